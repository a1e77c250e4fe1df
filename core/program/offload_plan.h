#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/mesh/buffer_plan.h"
#include "core/model/architecture.h"

namespace ptrain::program {

// Optimizer state that is offloaded waits in a store outside of memory, and passes through a ring
// of buffers while OPTIMIZER needs it: one buffer is used while the next group is fetched.
inline constexpr int kRingBuffers = 2;

// Pieces of the store and buffers are whole pages, which a disk reads and writes without a copy.
inline constexpr std::int64_t kPageBytes = 4096;

// By group: the buffer of the ring that its state passes through, -1 where it keeps none. The
// larger half of the groups shares the first one, so that only one buffer has the size of an
// embedding. The same on every rank.
std::vector<int> ring_buffers(const model::Architecture& architecture);
// The groups that keep state, in an order in which each buffer is used in turn.
std::vector<int> ring_order(const std::vector<int>& buffers);

// Where the state of one rank's shards lies.
struct OffloadPlan {
  struct Place {
    int buffer = -1;
    std::int64_t offset = 0;  // in the store
    std::int64_t bytes = 0;   // in the store and in the buffer: whole pages
  };
  std::vector<Place> groups;
  // Bytes of each: its largest group, and room to begin on a page.
  std::vector<std::int64_t> buffers;
  std::int64_t store_bytes = 0;

  std::int64_t ring_bytes() const;
};
// Of one group, in the store: whole pages.
std::int64_t offloaded_bytes(const model::Architecture& architecture, const mesh::BufferPlan& plan,
                             int shard_rank);
OffloadPlan plan_offload(const model::Architecture& architecture,
                         std::span<const mesh::BufferPlan> plans, const mesh::ShardRanks& shards);

}  // namespace ptrain::program
