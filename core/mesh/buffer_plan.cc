#include "core/mesh/buffer_plan.h"

#include <algorithm>
#include <numeric>

#include "core/mesh/owners.h"
#include "core/mesh/unit.h"

namespace ptrain::mesh {
namespace {

// Smaller shards that are worth taking neighbours apart.
constexpr double kWorthwhile = 0.999;

// The parameters of a group as units, and where each parameter lies in its own.
struct Parts {
  std::vector<Unit> units;
  std::vector<std::size_t> unit_of;
  std::vector<ParameterPlacement> placements;
};

// `together`: neighbours of one block size are one unit, so that matrices that are multiplied as
// one (query, key, value; gate, up) lie as one.
Parts parts_of(std::span<const model::ParameterSpec> parameters, std::span<const int> members,
               bool together) {
  Parts parts;
  for (const int member : members) {
    const model::ParameterSpec& parameter = parameters[static_cast<std::size_t>(member)];
    const std::int64_t block = parameter.block_elements();
    const bool joins = together && block > 1 && parameter.block != model::BlockKind::kMatrix &&
                       !parts.units.empty() && parts.units.back().block == block &&
                       parts.units.back().elements % block == 0;
    if (!joins) parts.units.push_back({0, block});
    Unit& unit = parts.units.back();
    parts.placements.push_back({member, unit.elements, parameter.num_elements()});
    parts.unit_of.push_back(parts.units.size() - 1);
    unit.elements += parameter.num_elements();
  }
  return parts;
}

BufferPlan plan_members(std::span<const model::ParameterSpec> parameters,
                        std::span<const int> members, int group, int num_ranks) {
  BufferPlan plan{group, std::vector<std::int64_t>(static_cast<std::size_t>(num_ranks)), {}};
  if (members.empty()) return plan;
  Parts parts = parts_of(parameters, members, true);
  Arrangement arrangement = arrange(parts.units, num_ranks);
  const auto bound = static_cast<std::int64_t>(kWorthwhile * static_cast<double>(arrangement.size));
  Parts apart = parts_of(parameters, members, false);
  if (least_size(apart.units, num_ranks) < bound) {
    Arrangement other = arrange(apart.units, num_ranks);
    if (other.size < bound) arrangement = std::move(other), parts = std::move(apart);
  }
  plan.shard_sizes.assign(static_cast<std::size_t>(num_ranks), arrangement.size);
  plan.placements = std::move(parts.placements);
  for (std::size_t i = 0; i < plan.placements.size(); ++i)
    plan.placements[i].offset += arrangement.starts[parts.unit_of[i]];
  std::ranges::sort(plan.placements, {}, &ParameterPlacement::offset);
  return plan;
}

}  // namespace

std::int64_t BufferPlan::total() const {
  return std::accumulate(shard_sizes.begin(), shard_sizes.end(), std::int64_t{0});
}

std::int64_t BufferPlan::shard_offset(int rank) const {
  return std::accumulate(shard_sizes.begin(), shard_sizes.begin() + rank, std::int64_t{0});
}

std::int64_t BufferPlan::padding() const {
  std::int64_t padding = total();
  for (const ParameterPlacement& placement : placements) padding -= placement.elements;
  return padding;
}

namespace {

int fullest(const model::Architecture& part, std::span<const BufferPlan> plans, bool experts) {
  std::vector<std::int64_t> elements(1);
  for (const BufferPlan& plan : plans) {
    if (part.groups[static_cast<std::size_t>(plan.group)].experts != experts) continue;
    elements.resize(plan.shard_sizes.size());
    for (std::size_t rank = 0; rank < elements.size(); ++rank)
      elements[rank] += plan.shard_sizes[rank];
  }
  return static_cast<int>(std::ranges::max_element(elements) - elements.begin());
}

}  // namespace

ShardRanks fullest_ranks(const model::Architecture& part, std::span<const BufferPlan> plans) {
  return {fullest(part, plans, false), fullest(part, plans, true)};
}

std::vector<ShardRun> BufferPlan::runs(int rank) const {
  const std::int64_t begin = shard_offset(rank);
  const std::int64_t end = begin + shard_sizes[static_cast<std::size_t>(rank)];
  std::vector<ShardRun> runs;
  for (const ParameterPlacement& placement : placements) {
    const std::int64_t first = std::max(begin, placement.offset);
    const std::int64_t last = std::min(end, placement.offset + placement.elements);
    if (first >= last) continue;
    runs.push_back(
        {placement.parameter, first - placement.offset, last - placement.offset, first - begin});
  }
  return runs;
}

BufferPlan plan_buffer(std::span<const model::ParameterSpec> parameters, int group, int num_ranks) {
  std::vector<int> members;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].group == group) members.push_back(static_cast<int>(i));
  return plan_members(parameters, members, group, num_ranks);
}

namespace {

// One walk over the parameters for all groups: a model of thousands of layers has as many groups.
// `num_ranks(group)`: over which it is sharded.
template <class NumRanks>
std::vector<BufferPlan> plan_groups(const model::Architecture& architecture,
                                    std::span<const int> owners, NumRanks num_ranks) {
  const auto num_groups = static_cast<std::size_t>(architecture.num_groups());
  std::vector<std::vector<int>> members(num_groups);
  for (std::size_t i = 0; i < architecture.parameters.size(); ++i)
    members[static_cast<std::size_t>(architecture.parameters[i].group)].push_back(
        static_cast<int>(i));
  std::vector<BufferPlan> plans;
  plans.reserve(num_groups);
  for (std::size_t group = 0; group < num_groups; ++group) {
    const bool owned =
        !members[group].empty() && owners[static_cast<std::size_t>(members[group].front())] >= 0;
    const int ranks = num_ranks(group);
    plans.push_back(owned ? plan_owned(architecture, members[group], owners, ranks)
                          : plan_members(architecture.parameters, members[group],
                                         static_cast<int>(group), ranks));
  }
  return plans;
}

// None where all is on one rank.
std::vector<int> owners_over(const model::Architecture& architecture, int num_ranks) {
  if (num_ranks > 1) return assign_owners(architecture, num_ranks);
  return std::vector<int>(architecture.parameters.size(), -1);
}

}  // namespace

std::vector<BufferPlan> plan_buffers(const model::Architecture& architecture, int num_ranks) {
  return plan_groups(architecture, owners_over(architecture, num_ranks),
                     [num_ranks](std::size_t) { return num_ranks; });
}

std::vector<BufferPlan> plan_buffers(const model::Architecture& part, const Layout& layout) {
  const int shards = layout.num_shards();
  const int expert_shards = num_expert_shards(layout);
  if (shards == expert_shards) return plan_buffers(part, shards);
  const auto is_expert = [&](int group) {
    return part.groups[static_cast<std::size_t>(group)].experts;
  };
  std::vector<int> owners = owners_over(part, shards);
  const std::vector<int> expert_owners = owners_over(part, expert_shards);
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (is_expert(part.parameters[i].group)) owners[i] = expert_owners[i];
  return plan_groups(part, owners, [&](std::size_t group) {
    return is_expert(static_cast<int>(group)) ? expert_shards : shards;
  });
}

}  // namespace ptrain::mesh
