#pragma once

#include "core/base/result.h"
#include "core/schedule/execute.h"

namespace ptrain::schedule {

// The error of an execution in which ranks wait for ever, with the ring of ranks and cells.
Status check_progress(const Schedule& schedule, const Positions& positions,
                      const Execution& execution);

}  // namespace ptrain::schedule
