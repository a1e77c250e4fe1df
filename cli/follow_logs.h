#pragma once

#include "core/base/result.h"
#include "core/run/directory.h"

namespace ptrain::cli {

// Prints what the ranks of the last attempt have logged and go on to log, with those of attempts
// that come, until the run is neither queued nor running, or a signal comes. rank -1: all, and what
// the script of its Slurm job writes.
Result<ExitCode> follow_logs(const run::Directory& directory, int rank);

}  // namespace ptrain::cli
