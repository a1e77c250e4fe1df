#pragma once

#include "core/program/action.h"
#include "launcher/plan/cost/context.h"

namespace ptrain::plan {

// Seconds of FETCH and OFFLOAD: the group's state on the fullest rank, at what a rank reads or
// writes while all ranks of its node do. 0 for the others.
double disk_seconds(const program::Action& action, const CostContext& context);

}  // namespace ptrain::plan
