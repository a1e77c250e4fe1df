#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/mesh/buffer_plan.h"
#include "core/model/optimizer_state.h"

namespace ptrain::mesh {

// Where one tensor of optimizer state lies that belongs to a run.
struct StatePiece {
  model::StateTensor tensor;
  std::int64_t begin = 0;   // first value, within the whole tensor
  std::int64_t values = 0;  // of the run
  std::int64_t offset = 0;  // bytes from the start of the group's state
};

// The optimizer state of one rank's runs of a group, one after another without the padding of the
// shard.
struct StatePlan {
  std::vector<std::vector<StatePiece>> pieces;  // by run, in the order of state_of
  std::int64_t bytes = 0;
};
StatePlan plan_state(const model::Architecture& architecture, std::span<const ShardRun> runs);

}  // namespace ptrain::mesh
