#pragma once

#include "core/model/architecture.h"
#include "core/program/action.h"
#include "engine/base/fault.h"

namespace ptrain::execute {

struct ActionPoints {
  fault::Point begin, end;
};

// Where a run of `action` can be cut: before it waits for others, and after.
ActionPoints points_of(const program::Action& action, const model::Architecture& architecture);

}  // namespace ptrain::execute
