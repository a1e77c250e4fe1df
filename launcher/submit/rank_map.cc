#include "launcher/submit/rank_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "launcher/supervise/narrate.h"
#include "launcher/supervise/places.h"

namespace ptrain::submit {

namespace {

std::string cores_of(const run::RankPlace& place, int threads) {
  const int first = place.slot * threads;
  return threads == 1 ? fmt::format("core {}", first)
                      : fmt::format("cores {}-{}", first, first + threads - 1);
}

std::string devices_of(const run::RankPlace& place, const Seats& seats) {
  const auto node = seats.find(place.node);
  const auto slot = static_cast<std::size_t>(place.slot);
  if (node != seats.end() && slot < node->second.size()) return node->second[slot];
  return place.gpu >= 0 ? fmt::format("GPU {}", place.gpu) : "";
}

}  // namespace

int ranks_per_node(const run::Plan& plan) {
  std::map<std::string, int> counts;
  for (const auto& place : plan.ranks) ++counts[place.node];
  int most = 1;
  for (const auto& [node, count] : counts) most = std::max(most, count);
  return most;
}

Status check_gpus(const run::Plan& plan, int gpus_per_node) {
  if (gpus_per_node == 0) return {};
  const auto refused = [&](const std::string& why, const std::string& hint) {
    return fail(ExitCode::kUsage, "cluster.slurm.gpus_per_node: " + why, hint);
  };
  if (std::ranges::all_of(plan.ranks, [](const run::RankPlace& place) { return place.gpu < 0; }))
    return refused("the plan's ranks run on cores, beside these GPUs",
                   "name gpus and gpu_memory_gib of the nodes in the cluster file, or leave it "
                   "out");
  if (const int most = ranks_per_node(plan); most > gpus_per_node)
    return refused(
        fmt::format("{} for {} ranks of a node, which take one each", gpus_per_node, most),
        fmt::format("ask for {}, or have the cluster file name fewer", most));
  return {};
}

run::Plan with_nodes(run::Plan plan, const std::vector<std::string>& names) {
  if (names.size() < supervise::nodes_of(plan).size()) return plan;
  return supervise::moved(std::move(plan), names);
}

std::string rank_map(const run::Plan& plan, const Seats& seats) {
  const int threads = plan.shapes.empty() ? 1 : plan.shapes.front().threads;
  const auto nodes = supervise::nodes_of(plan);
  const bool is_open = !nodes.empty() && nodes.front().starts_with("any-");
  std::string text = fmt::format(
      "{} ranks on {} nodes, {} on each{}:\n", plan.ranks.size(), nodes.size(),
      ranks_per_node(plan),
      is_open ? " (any-N: the N-th that Slurm gives; its ranks use the NICs nearest to them)" : "");
  for (const auto& place : plan.ranks) {
    const auto devices = devices_of(place, seats);
    text += fmt::format("  rank {}: {}, {}{}{}\n", place.rank, place.node, cores_of(place, threads),
                        devices.empty() ? "" : ", ", devices);
  }
  for (const auto& shape : plan.shapes) {
    text += fmt::format("shape {}: {}\n", shape.name, supervise::in_words(shape.layout));
    for (const auto& one : shape.predicted.classes) {
      const auto bytes = static_cast<double>(program::total_bytes(one.bytes));
      text += fmt::format("  memory: {} on each of {} ranks\n", supervise::short_bytes(bytes),
                          one.count);
    }
  }
  return text;
}

}  // namespace ptrain::submit
