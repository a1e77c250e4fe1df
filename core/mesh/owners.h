#pragma once

#include <span>
#include <vector>

#include "core/mesh/buffer_plan.h"
#include "core/model/architecture.h"

namespace ptrain::mesh {

// Which rank owns each parameter of the groups that have whole matrices as blocks; -1: the
// parameter's group has none. Matrices that are multiplied as one stay together. Owners are
// balanced over all groups by what it costs to orthogonalise a matrix, then by elements.
std::vector<int> assign_owners(const model::Architecture& architecture, int num_ranks);

// The buffer of `members` (parameters of one group), each whole on its owner: shards of different
// sizes, without padding.
BufferPlan plan_owned(const model::Architecture& architecture, std::span<const int> members,
                      std::span<const int> owners, int num_ranks);

}  // namespace ptrain::mesh
