#include "core/mesh/buffer_plan.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace ptrain::mesh {
namespace {

// Parameters that stay together without a gap: neighbours of one row size, so that matrices that
// are multiplied as one (query, key, value; gate, up) lie as one.
struct Unit {
  std::int64_t elements = 0;
  std::int64_t block = 1;
};

bool joins(const model::ParameterSpec& parameter, const Unit& unit) {
  return parameter.block == model::BlockKind::kRow && parameter.block_elements() == unit.block;
}

// A try of one shard size: the start of each unit, or by how much the size must grow at least.
struct Attempt {
  std::vector<std::int64_t> starts;
  std::int64_t growth = 0;
};

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t next_boundary(std::int64_t position, std::int64_t size) {
  return (position / size + 1) * size;
}

// The first position from `cursor` on where no shard boundary falls inside a block. Boundaries
// repeat, so what fits neither in this shard nor from the next boundary on fits nowhere.
std::optional<std::int64_t> first_start(const Unit& unit, std::int64_t cursor, std::int64_t size) {
  for (int shard = 0; shard < 2; ++shard) {
    const std::int64_t boundary = next_boundary(cursor, size);
    if (cursor + unit.elements <= boundary) return cursor;
    const std::int64_t aligned = cursor + (boundary - cursor) % unit.block;
    const bool one_boundary = aligned + unit.elements <= boundary + size;
    if (aligned < boundary && (one_boundary || size % unit.block == 0)) return aligned;
    cursor = boundary;
  }
  return std::nullopt;
}

// By how much a shard must grow before a unit that fits nowhere can fit: what spans more than two
// shards needs a size in whole blocks.
std::int64_t growth_to_fit(const Unit& unit, std::int64_t size) {
  const std::int64_t spans_two = divide_up(unit.elements, 2) - size;
  if (spans_two <= 0) return 1;
  return std::min(unit.block - size % unit.block, spans_two);
}

// By how much a shard must grow before a unit that was moved from `cursor` to `start` can stay:
// boundary k moves k times as far as a shard grows, until it meets the edge of a block or the
// unit's end. What was moved past the boundary, or reaches over a second one, may fit at any larger
// size.
std::int64_t growth_to_stay(const Unit& unit, std::int64_t cursor, std::int64_t start,
                            std::int64_t size) {
  const std::int64_t boundary = next_boundary(cursor, size);
  if (start > boundary || cursor + unit.elements > boundary + size) return 1;
  const std::int64_t to_edge = unit.block - (boundary - cursor) % unit.block;
  const std::int64_t to_end = cursor + unit.elements - boundary;
  return divide_up(std::min(to_edge, to_end), boundary / size);
}

// Puts each unit as early as it can lie; that never harms those behind it, so this is the shortest.
Attempt place(std::span<const Unit> units, std::int64_t size, int num_ranks) {
  Attempt attempt;
  std::int64_t cursor = 0;
  std::int64_t growth = size;
  for (const Unit& unit : units) {
    const auto start = first_start(unit, cursor, size);
    if (!start) return {{}, growth_to_fit(unit, size)};
    if (*start != cursor) {
      growth = std::min(growth, growth_to_stay(unit, cursor, *start, size));
    }
    attempt.starts.push_back(*start);
    cursor = *start + unit.elements;
  }
  const std::int64_t excess = cursor - size * num_ranks;
  if (excess > 0) attempt.growth = std::min(growth, divide_up(excess, num_ranks));
  return attempt;
}

std::int64_t smallest_size(std::span<const Unit> units, int num_ranks) {
  std::int64_t total = 0;
  std::int64_t largest_block = 0;
  for (const Unit& unit : units) {
    total += unit.elements;
    largest_block = std::max(largest_block, unit.block);
  }
  std::int64_t size = std::max(divide_up(total, num_ranks), largest_block);
  while (const std::int64_t growth = place(units, size, num_ranks).growth) size += growth;
  return size;
}

BufferPlan plan_members(std::span<const model::ParameterSpec> parameters,
                        std::span<const int> members, int group, int num_ranks) {
  BufferPlan plan{group, std::vector<std::int64_t>(static_cast<std::size_t>(num_ranks)), {}};
  std::vector<Unit> units;
  std::vector<std::size_t> unit_of;
  for (const int member : members) {
    const model::ParameterSpec& parameter = parameters[static_cast<std::size_t>(member)];
    if (units.empty() || !joins(parameter, units.back())) {
      units.push_back({0, parameter.block_elements()});
    }
    // Offset within its unit, until the units have their places.
    plan.placements.push_back({member, units.back().elements, parameter.num_elements()});
    unit_of.push_back(units.size() - 1);
    units.back().elements += parameter.num_elements();
  }
  if (units.empty()) return plan;
  const std::int64_t size = smallest_size(units, num_ranks);
  plan.shard_sizes.assign(static_cast<std::size_t>(num_ranks), size);
  const std::vector<std::int64_t> starts = place(units, size, num_ranks).starts;
  for (std::size_t i = 0; i < unit_of.size(); ++i) plan.placements[i].offset += starts[unit_of[i]];
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

// One walk over the parameters for all groups: a model of thousands of layers has as many groups.
std::vector<BufferPlan> plan_buffers(const model::Architecture& architecture, int num_ranks) {
  const auto num_groups = static_cast<std::size_t>(architecture.num_groups());
  std::vector<std::vector<int>> members(num_groups);
  for (std::size_t i = 0; i < architecture.parameters.size(); ++i)
    members[static_cast<std::size_t>(architecture.parameters[i].group)].push_back(
        static_cast<int>(i));
  std::vector<BufferPlan> plans;
  plans.reserve(num_groups);
  for (std::size_t group = 0; group < num_groups; ++group)
    plans.push_back(
        plan_members(architecture.parameters, members[group], static_cast<int>(group), num_ranks));
  return plans;
}

}  // namespace ptrain::mesh
