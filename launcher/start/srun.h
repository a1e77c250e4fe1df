#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "launcher/start/backend.h"

namespace ptrain::start {

// Ranks on the nodes of the Slurm job that this process is in, started by srun.
class Srun : public Backend {
 public:
  struct Traits {
    std::string last_node;       // of the job: the way to it is the way to all
    int cpus = 1;                // that the job has on each node, at least
    bool single_copy = true;     // as for mpirun
    bool overlap = false;        // steps hold a job's CPUs for themselves unless they say --overlap
    bool cpu_bind = false;       // knows --cpu-bind
    bool gpu_bind = false;       // knows --gpu-bind
    std::string interface = {};  // of the network that nodes meet on; empty: that on the way
  };
  Srun(std::string path, Traits traits) : path_(std::move(path)), traits_(std::move(traits)) {}

  base::Command command(const Launch& launch) const override;
  LauncherReport report(std::string_view output) const override;
  Result<std::string> control_host() const override;
  bool kills_on_term() const override { return true; }
  bool binds(const Launch& launch) const override;
  int files_of_rank() const override { return 1; }  // its control connection

 private:
  std::vector<std::string> placement(const Launch& launch) const;

  std::string path_;
  Traits traits_;
};

// The nodes that srun says are lost or take no task, and its first words on it.
LauncherReport lost_nodes_in(std::string_view output);

// What options srun has is asked of its own help, not guessed from its version: older ones share
// CPUs without --overlap. Asked once in a process.
Result<std::string> help_of(const std::string& srun);
bool knows_option(std::string_view help, std::string_view option);

}  // namespace ptrain::start
