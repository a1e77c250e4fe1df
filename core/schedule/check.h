#pragma once

#include "core/base/result.h"
#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// Whether the ranks can run it and each micro-batch passes through every stage once: each stage (of
// a copy) on one rank; each micro-batch on one copy; F of every stage, then B, or I then W; pairs
// of an F and a B or I; and nobody waits for ever while sends wait for nobody. The error names rank
// and cell.
Status check(const Schedule& schedule);

}  // namespace ptrain::schedule
