#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "launcher/start/backend.h"

namespace ptrain::start {

// Ranks on this machine, or on the nodes of a Slurm job, started by Open MPI's mpirun.
class Mpirun : public Backend {
 public:
  // The mpirun of PATH, when it is Open MPI 4.1 or newer (kEnvironment otherwise).
  // `last_node`: of the Slurm job in which it is to start ranks; `interface`: of the network that
  // nodes meet on.
  static Result<Mpirun> find(const std::string& last_node = "", const std::string& interface = "");

  struct Traits {
    int major = 4;  // version of Open MPI
    bool is_root = false;
    bool single_copy = true;     // ranks may read one another's memory (cross-memory attach)
    std::string last_node = {};  // of a Slurm job: the way to it is the way to all; empty: no job
    std::string interface = {};  // as for srun
  };
  Mpirun(std::string path, Traits traits) : path_(std::move(path)), traits_(traits) {}

  base::Command command(const Launch& launch) const override;
  LauncherReport report(std::string_view output) const override;
  Result<std::string> control_host() const override;
  bool kills_on_term() const override { return is_in_job(); }
  bool binds(const Launch&) const override { return false; }
  int files_of_rank() const override { return 10; }  // mpirun itself has 8 (measured, 4.1.4)

 private:
  bool is_in_job() const { return !traits_.last_node.empty(); }
  std::vector<std::string> components() const;
  void place_on_nodes(const Launch& launch, base::Command& command) const;

  std::string path_;
  Traits traits_;
};

// The major version in the first line of `mpirun --version`; an error when it is another MPI or too
// old.
Result<int> mpirun_version(std::string_view output, const std::string& path);

// Whether one process may read the memory of another. Containers often forbid the call by seccomp;
// Open MPI then fails in the first large message.
bool can_read_memory_of_others();

}  // namespace ptrain::start
