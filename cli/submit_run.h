#pragma once

#include <string>

#include "cli/commands.h"
#include "core/run/directory.h"
#include "core/run/plan.h"
#include "launcher/recipe/reader.h"
#include "launcher/supervise/signals.h"

namespace ptrain::cli {

// Whether a run of this recipe is submitted to Slurm rather than started here: someone asks for it,
// and this is a login node rather than a job.
bool is_submitted(const recipe::Cluster& cluster);
std::string why_not_submitted();

// Shows the run's job until it ends, or, detached, only how to come back to it.
Result<ExitCode> follow_job(const run::Directory& directory, bool detach,
                            supervise::StopSignals& signals);

// `ptrain run RECIPE` on a login node: plan, run directory, batch script, sbatch, then follow.
Result<ExitCode> submit_run(const RunArguments& arguments, const recipe::LoadedRecipe& loaded);

}  // namespace ptrain::cli
