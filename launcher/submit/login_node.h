#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/recipe/recipe.h"
#include "launcher/cluster/cluster.h"
#include "launcher/submit/slurm_text.h"

namespace ptrain::submit {

// What Slurm tells on a login node about where a job could run.
struct LoginNode {
  std::string cluster;
  std::vector<Partition> partitions;
  std::vector<NodeLine> nodes;
  std::vector<std::string> excluded;  // of the job: names in cluster.slurm.exclude
  std::string mpi_plugins;            // what `srun --mpi=list` says
  std::string srun_help;
};

// Asks sinfo's sources: scontrol and srun.
Result<LoginNode> probe(const recipe::Slurm& slurm);

// The partition that the job goes to; null: there is no such.
const Partition* partition_of(const LoginNode& seen, const recipe::Slurm& slurm);

// The partition's nodes that the job could get: not excluded, with the features asked for as far as
// these are one word. Those that are down or drained are left out where there are enough others.
std::vector<NodeLine> nodes_for(const LoginNode& seen, const recipe::Slurm& slurm);

// What can be known before the queue: errors (kUsage) name the field, the limit and what helps.
Status check(const LoginNode& seen, const recipe::Slurm& slurm);
// What the job waits for, where it does: nodes that are busy, drained or down; empty: nothing.
std::string wait_of(const LoginNode& seen, const recipe::Slurm& slurm);
// Whether ranks of several nodes can find each other (kEnvironment).
Status check_plugins(const LoginNode& seen, const recipe::Cluster& cluster);

// What of this explains that Slurm refuses the job, in one line; empty: nothing.
std::string explanation(const LoginNode& seen, const recipe::Slurm& slurm,
                        const std::string& refusal);

// As many nodes as asked for, each like the least of those that the job could get. Which it gets is
// known only once it runs: they are named any-1, any-2, ... `memory_bytes`: of a node of which
// Slurm does not know it.
cluster::Cluster planned_nodes(const LoginNode& seen, const recipe::Slurm& slurm,
                               std::int64_t memory_bytes, std::vector<std::string>& notes);

}  // namespace ptrain::submit
