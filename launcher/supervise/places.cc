#include "launcher/supervise/places.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptrain::supervise {

namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::vector<std::string> nodes_of(const run::Plan& plan) {
  std::vector<std::string> nodes;
  for (const auto& place : plan.ranks)
    if (std::ranges::find(nodes, place.node) == nodes.end()) nodes.push_back(place.node);
  return nodes;
}

run::Plan moved(run::Plan plan, const std::vector<std::string>& nodes) {
  const auto before = nodes_of(plan);
  for (auto& place : plan.ranks) {
    const auto index = std::ranges::find(before, place.node) - before.begin();
    place.node = nodes[static_cast<std::size_t>(index)];
  }
  return plan;
}

Result<run::Plan> place(const run::Plan& plan, const std::vector<std::string>& nodes,
                        const Replan& replan) {
  const auto named = nodes_of(plan);
  const bool all_there = std::ranges::all_of(
      named, [&](const auto& node) { return std::ranges::find(nodes, node) != nodes.end(); });
  if (all_there) return plan;
  if (named.size() <= nodes.size()) return moved(plan, nodes);
  std::string why;  // of the most nodes
  for (auto fewer = nodes; !fewer.empty(); fewer.pop_back()) {
    auto again = replan(plan, fewer);
    if (again && nodes_of(*again).size() <= fewer.size()) return moved(std::move(*again), fewer);
    if (why.empty())
      why = again ? fmt::format("the plan needs {} nodes", nodes_of(*again).size())
                  : first_line(again.error().message);
  }
  return fail(ExitCode::kNothingFits, fmt::format("{} nodes are left: {}", nodes.size(), why));
}

}  // namespace ptrain::supervise
