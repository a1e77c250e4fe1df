#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "core/schedule/schedule.h"
#include "core/schedule/steps.h"

namespace ptrain::schedule {

// What a SEND waits for: nothing, or until the receiver stands at its RECV.
enum class Sends : std::uint8_t { kAsynchronous, kRendezvous };

// Whether the transfers and gathers of a lowered schedule are right: no ranks wait for each other
// for ever; each SEND and each RECV once, after (before) the work that makes (needs) it, with its
// partner on the other rank; and, where there are UNSHARDs, no work on a stage that is not
// gathered.
Status check_transfers(const Steps& steps, Sends sends);

// The schedule with a SEND after each cell whose result another rank needs, and the RECV just
// before the cell that needs it.
Steps with_transfers(const Schedule& schedule);

}  // namespace ptrain::schedule
