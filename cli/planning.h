#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "launcher/cluster/cluster.h"
#include "launcher/plan/plan.h"
#include "launcher/recipe/reader.h"

namespace ptrain::cli {

// From a recipe to its plan: the cluster (the file given, else the recipe's, else this machine with
// the figures of a kept or fresh probe; `probe_again`: a fresh one in any case), then the search.
// Used by plan and run.
Result<plan::Planning> make_planning(const recipe::LoadedRecipe& loaded,
                                     const std::string& cluster_file, bool probe_again = false);

// The same for nodes of a Slurm cluster that are not ours yet: with the figures that a job on them
// left, or the recipe's cluster file.
Result<plan::Planning> plan_for_nodes(const recipe::LoadedRecipe& loaded,
                                      const cluster::Cluster& nodes);

// A plan.json that the user gives for a recipe; one of another recipe is refused.
Result<run::Plan> given_plan(const std::string& path, const recipe::LoadedRecipe& loaded);

// A run's plan made again for these nodes of its Slurm job alone. Nothing is measured again.
Result<run::Plan> replan_for_nodes(const run::Plan& plan, const std::vector<std::string>& nodes);

// What a run's plan was made from, as far as it is still kept: nothing is measured again.
Result<plan::PlanInput> kept_input(const run::Plan& plan);

}  // namespace ptrain::cli
