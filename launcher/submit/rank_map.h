#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/plan.h"

namespace ptrain::submit {

// Ranks of a plan on each of its nodes, at the most.
int ranks_per_node(const run::Plan& plan);

// The plan with its nodes, in their order, named so; where there are too few names it stays as it
// is.
run::Plan with_nodes(run::Plan plan, const std::vector<std::string>& names);

// Whether the job that asks for so many GPUs a node has one for each rank; 0: it asks for none, and
// gets what its partition gives.
Status check_gpus(const run::Plan& plan, int gpus_per_node);

// Of each node that was asked, what its places are in devices, in their order.
using Seats = std::map<std::string, std::vector<std::string>>;

// Where each rank runs and what it holds, a line a rank and a line a shape, for --dry-run. Devices
// of a node that could not be asked are found by its ranks.
std::string rank_map(const run::Plan& plan, const Seats& seats = {});

}  // namespace ptrain::submit
