#pragma once

#include <span>
#include <vector>

#include "core/model/architecture.h"
#include "core/program/action.h"

namespace ptrain::program {

// The layer that an action works on, or none (-1): those that compute have one.
int layer_of(const Action& action);

// The groups whose whole parameters an action reads. The backward of an embedding reads none: it
// adds rows to gradients; neither does BACKWARD_WEIGHT.
std::span<const int> groups_read(const Action& action, const model::Architecture& architecture);

// The groups to whose gradients an action adds.
std::span<const int> groups_written(const Action& action, const model::Architecture& architecture);
bool writes(const Action& action, int group, const model::Architecture& architecture);

// By group: whether a layer that the actions work on reads it, so that the rank holds it.
std::vector<bool> groups_held(std::span<const Action> actions,
                              const model::Architecture& architecture);

}  // namespace ptrain::program
