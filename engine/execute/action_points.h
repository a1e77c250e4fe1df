#pragma once

#include <optional>

#include "core/model/architecture.h"
#include "core/program/action.h"
#include "engine/base/fault.h"

namespace ptrain::execute {

struct ActionPoints {
  fault::Point begin, end;
};

// Where a run of `action` can be cut: before it waits for others, and after. None for what only
// layouts do that share a replica's work out.
std::optional<ActionPoints> points_of(const program::Action& action,
                                      const model::Architecture& architecture);

}  // namespace ptrain::execute
