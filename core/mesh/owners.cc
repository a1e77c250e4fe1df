#include "core/mesh/owners.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace ptrain::mesh {
namespace {

using model::BlockKind;
using model::ParameterSpec;

// Parameters that go to one owner.
struct Item {
  std::vector<std::size_t> parameters;
  double cost = 0;
  std::int64_t elements = 0;
};

// The products of a step of Newton-Schulz on a matrix go with long side x short side squared.
double cost_of(const ParameterSpec& parameter) {
  if (parameter.block != BlockKind::kMatrix || parameter.shape.size() < 2) return 0;
  const auto rows = static_cast<double>(parameter.shape[0]);
  const auto cols = static_cast<double>(parameter.num_elements()) / rows;
  return std::max(rows, cols) * std::min(rows, cols) * std::min(rows, cols);
}

bool joins(const ParameterSpec& before, const ParameterSpec& after) {
  return cost_of(before) > 0 && cost_of(after) > 0 && before.group == after.group &&
         before.shape[1] == after.shape[1];
}

std::vector<Item> items_of(const model::Architecture& architecture) {
  const auto& parameters = architecture.parameters;
  std::set<int> groups;
  for (const ParameterSpec& parameter : parameters)
    if (parameter.block == BlockKind::kMatrix) groups.insert(parameter.group);
  std::vector<Item> items;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!groups.contains(parameters[i].group)) continue;
    const bool joined = i > 0 && !items.empty() && items.back().parameters.back() == i - 1 &&
                        joins(parameters[i - 1], parameters[i]);
    Item& item = joined ? items.back() : items.emplace_back();
    item.parameters.push_back(i);
    item.cost += cost_of(parameters[i]);
    item.elements += parameters[i].num_elements();
  }
  return items;
}

// What a rank has been given: what is compared comes first.
using Load = std::tuple<double, std::int64_t, int>;  // cost, elements, rank

}  // namespace

// The costliest first, each to the rank that has least; then what costs nothing evens out elements.
std::vector<int> assign_owners(const model::Architecture& architecture, int num_ranks) {
  std::vector<int> owners(architecture.parameters.size(), -1);
  std::vector<Item> items = items_of(architecture);
  std::ranges::stable_sort(items, [](const Item& a, const Item& b) {
    return std::tuple(a.cost, a.elements) > std::tuple(b.cost, b.elements);
  });
  std::set<Load> loads;
  for (int rank = 0; rank < num_ranks; ++rank) loads.insert({0, 0, rank});
  bool by_cost = true;
  for (const Item& item : items) {
    if (by_cost && item.cost == 0) {
      by_cost = false;
      std::set<Load> by_elements;
      for (const auto& [cost, elements, rank] : loads) by_elements.insert({0, elements, rank});
      loads = std::move(by_elements);
    }
    const auto [cost, elements, rank] = *loads.begin();
    loads.erase(loads.begin());
    loads.insert({cost + item.cost, elements + item.elements, rank});
    for (const std::size_t parameter : item.parameters) owners[parameter] = rank;
  }
  return owners;
}

BufferPlan plan_owned(const model::Architecture& architecture, std::span<const int> members,
                      std::span<const int> owners, int num_ranks) {
  BufferPlan plan{0, std::vector<std::int64_t>(static_cast<std::size_t>(num_ranks)), {}};
  std::vector<int> by_owner(members.begin(), members.end());
  const auto owner = [&](int member) { return owners[static_cast<std::size_t>(member)]; };
  std::ranges::stable_sort(by_owner, {}, owner);
  std::int64_t offset = 0;
  for (const int member : by_owner) {
    const auto& parameter = architecture.parameters[static_cast<std::size_t>(member)];
    plan.group = parameter.group;
    plan.placements.push_back({member, offset, parameter.num_elements()});
    plan.shard_sizes[static_cast<std::size_t>(owner(member))] += parameter.num_elements();
    offset += parameter.num_elements();
  }
  return plan;
}

}  // namespace ptrain::mesh
