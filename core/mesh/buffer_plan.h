#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/architecture.h"

namespace ptrain::mesh {

// Where one parameter lies in its group's flat buffer.
struct ParameterPlacement {
  int parameter = 0;        // index into Architecture::parameters
  std::int64_t offset = 0;  // elements from the buffer's start
  std::int64_t elements = 0;
  bool operator==(const ParameterPlacement&) const = default;
};

// A run of one parameter's elements that one rank holds.
struct ShardRun {
  int parameter = 0;
  std::int64_t begin = 0;  // first element, within the flattened parameter
  std::int64_t end = 0;
  std::int64_t shard_offset = 0;  // elements from the start of the rank's shard
  bool operator==(const ShardRun&) const = default;
};

// The flat buffer of one group, cut into one contiguous shard a rank of the shard axis. No block is
// split; gathers and reduce-scatters work on it in place. All lengths in elements.
struct BufferPlan {
  int group = 0;
  std::vector<std::int64_t> shard_sizes;  // one a rank, padding included
  std::vector<ParameterPlacement> placements;

  int num_ranks() const { return static_cast<int>(shard_sizes.size()); }
  std::int64_t total() const;
  std::int64_t shard_offset(int rank) const;
  std::int64_t padding() const;
  std::vector<ShardRun> runs(int rank) const;
  bool operator==(const BufferPlan&) const = default;
};

// Equal shards, the smallest that splits no block. Parameters keep their order; padding lies at the
// end and between them, never between neighbours of one row size (query, key, value; gate, up).
BufferPlan plan_buffer(std::span<const model::ParameterSpec> parameters, int group, int num_ranks);
std::vector<BufferPlan> plan_buffers(const model::Architecture& architecture, int num_ranks);

}  // namespace ptrain::mesh
