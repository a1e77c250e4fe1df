#pragma once

#include "core/base/result.h"

namespace ptrain::start {

// What mpirun stumbles over without saying so, or waits for without end: too few files that a
// process may have open, so many for each rank (where the user may raise the limit, it is raised),
// too small files, and a folder for temporary files that cannot be written or has no room. Errors:
// kEnvironment.
Status check_environment(int num_ranks, int files_of_rank);

}  // namespace ptrain::start
