#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptrain::mesh {

// What lies in a buffer without a gap inside: one parameter, or neighbours of one row size. A shard
// may begin only on a multiple of `block` from its start, or at its end.
struct Unit {
  std::int64_t elements = 0;
  std::int64_t block = 1;
  bool operator==(const Unit&) const = default;
};

// Shards of equal size, and where each unit starts; shard k begins at k * size.
struct Arrangement {
  std::int64_t size = 0;
  std::vector<std::int64_t> starts;  // in the order of the units
};

// Units in the given order, on the smallest shards that split no block.
Arrangement arrange_in_order(std::span<const Unit> units, int num_ranks);

// Units in any order, on shards that are never larger, and mostly as small as any arrangement's.
Arrangement arrange(std::span<const Unit> units, int num_ranks);

// Shards are at least this large in any arrangement: they hold all units, and what spans more than
// two of them needs shards of whole blocks.
std::int64_t least_size(std::span<const Unit> units, int num_ranks);

// The first position from `cursor` on where no shard boundary falls inside a block; -1: nowhere.
std::int64_t first_start(const Unit& unit, std::int64_t cursor, std::int64_t size);

}  // namespace ptrain::mesh
