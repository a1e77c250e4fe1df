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

// The same of a job that Slurm ends and that is a task of an array, when the next is "7_2".
std::string next_task_text(const std::string& next);

// Takes the tasks of an array that have not begun out of the queue.
Status cancel_waiting(const std::string& array);

}  // namespace ptrain::supervise
