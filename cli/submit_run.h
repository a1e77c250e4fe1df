#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"
#include "core/run/directory.h"
#include "core/run/plan.h"
#include "launcher/plan/plan.h"
#include "launcher/recipe/reader.h"
#include "launcher/submit/job.h"
#include "launcher/submit/login_node.h"
#include "launcher/supervise/signals.h"

namespace ptrain::cli {

// Whether a run of this recipe is submitted to Slurm rather than started here: someone asks for it,
// and this is a login node rather than a job.
bool is_submitted(const recipe::Cluster& cluster);
std::string why_not_submitted();
// For a run that is started here, because of `why`: options of Slurm on its command line are
// refused, and what the recipe asks of Slurm is said to have no effect.
Status check_started_here(const std::vector<std::string>& options, bool detach,
                          const recipe::Cluster& cluster,
                          const std::string& why = why_not_submitted());

// `ptrain run RECIPE` on a login node: plan, run directory, batch script, sbatch, then follow. With
// an origin the run goes on from there.
Result<ExitCode> submit_run(const RunArguments& arguments, const recipe::LoadedRecipe& loaded,
                            const run::Origin& origin = {});

// A job for the run in this directory, which may be still to be made.
Result<submit::Job> job_for(const std::string& directory, const recipe::Recipe& recipe);

// What this login node knows, once Slurm would take such a job. Its own words come first in an
// error, then what we know of the reason.
Result<submit::LoginNode> look_around(const submit::Job& job);

// The plan of a recipe for the nodes that such a job gets.
Result<plan::Planning> plan_job(const recipe::LoadedRecipe& loaded, const submit::LoginNode& seen);

struct HandOver {
  submit::Job job;
  std::string recipe;  // the user's own file
  bool detach = false;
};
// Gives the run, whose directory is there, to Slurm, and follows it.
Result<ExitCode> hand_over(const HandOver& what, const submit::LoginNode& seen,
                           supervise::StopSignals& signals);

}  // namespace ptrain::cli
