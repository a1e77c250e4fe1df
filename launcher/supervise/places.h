#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/plan.h"

namespace ptrain::supervise {

// Makes a run's plan again for these nodes of its Slurm job. Errors say why nothing fits.
using Replan =
    std::function<Result<run::Plan>(const run::Plan& plan, const std::vector<std::string>& nodes)>;

// The different nodes of a plan's ranks, in the order in which ranks fill them.
std::vector<std::string> nodes_of(const run::Plan& plan);

// The plan with its nodes, in their order, named so. `nodes` are as many or more: srun fills those
// of a job in their order, whatever a list of them says.
run::Plan moved(run::Plan plan, const std::vector<std::string>& nodes);

// The plan with its ranks on the first of `nodes` that it needs; as it is when it names only these.
// Where they are too few, it is planned again, for all of them or for the most that some layout
// divides the work over.
Result<run::Plan> place(const run::Plan& plan, const std::vector<std::string>& nodes,
                        const Replan& replan);

}  // namespace ptrain::supervise
