#pragma once

#include <string>

#include "core/run/directory.h"
#include "core/run/plan.h"

namespace ptrain::cli {

// Takes the run's lock, finds mpirun and the engine, and supervises attempts until the run ends.
Result<ExitCode> start_run(const run::Directory& directory, const run::Plan& plan);

// The exact command that starts the ranks of the plan's first shape, for --dry-run.
Result<std::string> start_command(const run::Directory& directory, const run::Plan& plan);

}  // namespace ptrain::cli
