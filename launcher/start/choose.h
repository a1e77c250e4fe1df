#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/recipe/slurm.h"
#include "launcher/cluster/slurm.h"
#include "launcher/start/backend.h"

namespace ptrain::start {

// The Slurm job that this process is in, where srun is needed and can be used. A job of this one
// machine needs none; in a container there often is none, and ptrain then sees this machine alone.
std::optional<cluster::Allocation> usable_allocation();

// What a recipe says of it.
struct Wanted {
  recipe::RankLauncher launcher = recipe::RankLauncher::kSrun;
  std::string interface = {};  // of the network that nodes meet on
};

// What starts ranks from here: inside a Slurm job of several nodes srun, or the mpirun that is
// asked for, on its nodes; else mpirun on this machine. Errors (kEnvironment): none can start ranks
// on so many nodes.
Result<std::unique_ptr<Backend>> choose_backend(int num_nodes, const Wanted& wanted = {});

// The beginning of a command that runs one task on each of these nodes of our job, without MPI.
base::Command on_each_node(const std::vector<std::string>& nodes);

// Whether srun can start ranks that find each other (by its plugin pmix).
Status check_pmix_plugin();

}  // namespace ptrain::start
