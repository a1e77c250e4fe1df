#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "launcher/cluster/cluster.h"

namespace ptrain::cluster {

// The Slurm job that this process is in, by its environment.
struct Allocation {
  std::string job;    // as Slurm's commands take it, "7" or "7_2"; empty: in none
  std::string nodes;  // "node[1-2]"
  int num_nodes = 0;
  std::string cpus;    // "4(x2)": of each node
  std::string memory;  // MiB of each node; empty: not limited by the job
  std::string here;    // the node that this process is on; empty: on none of Slurm's
  bool has_gpus = false;
  std::int64_t end_time = 0;  // of the job, in seconds since 1970; 0: not told
  // Of a job array, numbers that this job is known by too: "7" and "2". A job that was submitted
  // inside a task has that task's.
  std::string array = {}, task = {};
};
Allocation find_allocation();

// Names of its nodes, in the order in which srun fills them.
Result<std::vector<std::string>> allocated_nodes(const Allocation& allocation);

// How Slurm sees a job now. Errors (kEnvironment): there is no scontrol, or it fails.
struct JobNow {
  std::string state;               // RUNNING, COMPLETING, ...
  std::vector<std::string> nodes;  // that it still has: lost ones are taken from it
  bool operator==(const JobNow&) const = default;
};
Result<JobNow> ask_job(const std::string& job);
Result<JobNow> job_in(std::string_view shown);  // by `scontrol -o show job`

// Those of a running job's `nodes` that it does not have any more; none where Slurm tells of no
// nodes.
inline constexpr const char* kRunning = "RUNNING";
std::vector<std::string> taken_nodes(const JobNow& now, std::vector<std::string> nodes);

// Its nodes in the same order, with default figures. Asks scontrol; where there is none, as in many
// containers, all nodes have this machine's memory, and their CPUs are cores. Errors: scontrol is
// there and fails. GPUs are not looked at: Slurm does not tell their memory, a cluster file does.
Result<Cluster> allocated_cluster(const Allocation& allocation);

// "4(x2),8" is 4, 4, 8.
Result<std::vector<int>> cpus_of_nodes(std::string_view text);

// What `scontrol -o show node` says of one node.
struct NodeFacts {
  std::string name;
  int threads_per_core = 1;
  std::int64_t memory_bytes = 0;  // 0: not configured
  bool operator==(const NodeFacts&) const = default;
};
NodeFacts node_facts(std::string_view line);

}  // namespace ptrain::cluster
