#include "launcher/submit/rank_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "launcher/supervise/narrate.h"

namespace ptrain::submit {

namespace {

// In the order of their first ranks.
std::vector<std::string> nodes_of(const run::Plan& plan) {
  std::vector<std::string> names;
  for (const auto& place : plan.ranks)
    if (std::ranges::find(names, place.node) == names.end()) names.push_back(place.node);
  return names;
}

std::string cores_of(const run::RankPlace& place, int threads) {
  const int first = place.slot * threads;
  if (place.gpu >= 0) return fmt::format("GPU {}", place.gpu);
  return threads == 1 ? fmt::format("core {}", first)
                      : fmt::format("cores {}-{}", first, first + threads - 1);
}

double bytes_of(const run::ClassPrediction& one) {
  double bytes = 0;
  for (const Bytes part : one.bytes) bytes += static_cast<double>(part.value);
  return bytes;
}

}  // namespace

int ranks_per_node(const run::Plan& plan) {
  std::map<std::string, int> counts;
  for (const auto& place : plan.ranks) ++counts[place.node];
  int most = 1;
  for (const auto& [node, count] : counts) most = std::max(most, count);
  return most;
}

run::Plan with_nodes(run::Plan plan, const std::vector<std::string>& names) {
  const auto before = nodes_of(plan);
  if (names.size() < before.size()) return plan;
  for (auto& place : plan.ranks)
    place.node =
        names[static_cast<std::size_t>(std::ranges::find(before, place.node) - before.begin())];
  return plan;
}

std::string rank_map(const run::Plan& plan) {
  const int threads = plan.shapes.empty() ? 1 : plan.shapes.front().threads;
  std::string text = fmt::format("{} ranks on {} nodes (any-N: the N-th that Slurm gives):\n",
                                 plan.ranks.size(), nodes_of(plan).size());
  for (const auto& place : plan.ranks)
    text += fmt::format("  rank {}: {}, {}\n", place.rank, place.node, cores_of(place, threads));
  for (const auto& shape : plan.shapes) {
    text += fmt::format("shape {}: {}\n", shape.name, supervise::in_words(shape.layout));
    for (const auto& one : shape.predicted.classes)
      text += fmt::format("  memory: {} on each of {} ranks\n",
                          supervise::short_bytes(bytes_of(one)), one.count);
  }
  return text;
}

}  // namespace ptrain::submit
