#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/mesh/group_mesh.h"
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
  std::vector<std::int64_t> shard_sizes;       // one a rank, padding included
  std::vector<ParameterPlacement> placements;  // by offset

  int num_ranks() const { return static_cast<int>(shard_sizes.size()); }
  std::int64_t total() const;
  std::int64_t shard_offset(int rank) const;
  std::int64_t padding() const;
  std::vector<ShardRun> runs(int rank) const;
  bool operator==(const BufferPlan&) const = default;
};

// Equal shards, mostly as small as they can be without splitting a block. Parameters may come in
// any order, with padding at the end and between them; neighbours of one block size (query, key,
// value; gate, up) stay together unless that costs a thousandth of the buffer.
BufferPlan plan_buffer(std::span<const model::ParameterSpec> parameters, int group, int num_ranks);
// One plan a group. Where a group has blocks that are whole matrices, its shards are as unequal as
// these, and balanced over all groups together (owners.h).
std::vector<BufferPlan> plan_buffers(const model::Architecture& architecture, int num_ranks);

// As the layout shards them: experts over their own axes. The plans are those of one rank's part of
// the model (part.h).
std::vector<BufferPlan> plan_buffers(const model::Architecture& part, const Layout& layout);

// Those whose shards hold most elements: of dense groups, and of experts.
ShardRanks fullest_ranks(const model::Architecture& part, std::span<const BufferPlan> plans);

}  // namespace ptrain::mesh
