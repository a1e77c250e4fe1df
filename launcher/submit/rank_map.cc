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
  if (names.size() < supervise::nodes_of(plan).size()) return plan;
  return supervise::moved(std::move(plan), names);
}

std::string rank_map(const run::Plan& plan) {
  const int threads = plan.shapes.empty() ? 1 : plan.shapes.front().threads;
  std::string text = fmt::format("{} ranks on {} nodes (any-N: the N-th that Slurm gives):\n",
                                 plan.ranks.size(), supervise::nodes_of(plan).size());
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
