#pragma once

#include <string>

#include "core/base/result.h"
#include "core/recipe/recipe.h"
#include "core/run/directory.h"

namespace ptrain::supervise {

// What goes on after a Slurm job whose time was up before the run was done.
//
// What the verdict says of it, before it is tried.
std::string follow_up_text(recipe::AtTimeLimit how, const std::string& job);

// Has Slurm start the job again, which ends us, or submits the run's batch script once more, to
// start when this job has ended; nothing for kStop. Errors carry Slurm's own words.
Status follow_up(recipe::AtTimeLimit how, const std::string& job, const run::Directory& directory);

}  // namespace ptrain::supervise
