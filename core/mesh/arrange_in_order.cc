#include <algorithm>

#include "core/base/divide.h"
#include "core/mesh/unit.h"

namespace ptrain::mesh {
namespace {

// A try of one shard size: the start of each unit, or by how much the size must grow at least.
struct Attempt {
  std::vector<std::int64_t> starts;
  std::int64_t growth = 0;
};

std::int64_t next_boundary(std::int64_t position, std::int64_t size) {
  return (position / size + 1) * size;
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
    const std::int64_t start = first_start(unit, cursor, size);
    if (start < 0) return {{}, growth_to_fit(unit, size)};
    if (start != cursor) growth = std::min(growth, growth_to_stay(unit, cursor, start, size));
    attempt.starts.push_back(start);
    cursor = start + unit.elements;
  }
  const std::int64_t excess = cursor - size * num_ranks;
  if (excess > 0) attempt.growth = std::min(growth, divide_up(excess, num_ranks));
  return attempt;
}

}  // namespace

// Boundaries repeat, so what fits neither in this shard nor from the next boundary on fits nowhere.
std::int64_t first_start(const Unit& unit, std::int64_t cursor, std::int64_t size) {
  for (int shard = 0; shard < 2; ++shard) {
    const std::int64_t boundary = next_boundary(cursor, size);
    if (cursor + unit.elements <= boundary) return cursor;
    const std::int64_t aligned = cursor + (boundary - cursor) % unit.block;
    const bool one_boundary = aligned + unit.elements <= boundary + size;
    if (aligned < boundary && (one_boundary || size % unit.block == 0)) return aligned;
    cursor = boundary;
  }
  return -1;
}

Arrangement arrange_in_order(std::span<const Unit> units, int num_ranks) {
  std::int64_t total = 0;
  std::int64_t largest_block = 0;
  for (const Unit& unit : units) {
    total += unit.elements;
    largest_block = std::max(largest_block, std::min(unit.block, unit.elements));
  }
  Arrangement best{std::max(divide_up(total, num_ranks), largest_block), {}};
  while (true) {
    Attempt attempt = place(units, best.size, num_ranks);
    if (attempt.growth == 0) {
      best.starts = std::move(attempt.starts);
      return best;
    }
    best.size += attempt.growth;
  }
}

}  // namespace ptrain::mesh
