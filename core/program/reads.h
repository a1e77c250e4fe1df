#pragma once

#include <span>

#include "core/model/architecture.h"
#include "core/program/action.h"

namespace ptrain::program {

// The layer that an action works on, or none (-1): FORWARD, BACKWARD and RECOMPUTE have one.
int layer_of(const Action& action);

// The groups whose whole parameters an action reads. The backward of an embedding reads none: it
// adds rows to gradients.
std::span<const int> groups_read(const Action& action, const model::Architecture& architecture);

}  // namespace ptrain::program
