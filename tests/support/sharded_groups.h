#pragma once

#include <vector>

#include "core/mesh/buffer_plan.h"
#include "engine/state/group_buffer.h"

namespace ptrain::support {

// All groups of a model as rank `rank` of `num_ranks` holds them, gradients whole. The model and
// the arena must outlive them.
inline std::vector<state::GroupBuffer> sharded_groups(const model::Architecture& architecture,
                                                      int num_ranks, int rank, Arena& arena) {
  std::vector<state::GroupBuffer> groups;
  for (const auto& buffer : mesh::plan_buffers(architecture, num_ranks))
    groups.emplace_back(architecture, buffer, state::GroupBuffer::Place{rank, false}, arena);
  return groups;
}

}  // namespace ptrain::support
