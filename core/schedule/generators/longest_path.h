#pragma once

#include "core/schedule/placement.h"
#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// Every stage runs its cells in the order of 1F1B over as many ranks as stages, with
// `extra_forwards` more before the first backward; of those whose turn it is, a rank takes the one
// from which the longest path leads to the end.
Schedule longest_path_first(const Problem& problem, Placement placement, int extra_forwards);

}  // namespace ptrain::schedule
