#pragma once

#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// Two-stage backward: whole backwards become those of the input, and every backward of weights
// comes after everything else of its rank, in the order it had.
Schedule weights_last(const Schedule& schedule);

}  // namespace ptrain::schedule
