#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "launcher/base/subprocess.h"

namespace ptrain::supervise {

// A job that outlives the loss of nodes (--no-kill) also outlives that of the node where its script
// is: Slurm then lets it run on with nobody in it. A guard on another node has such a job started
// again, or, where it may not be, ended.
class Guard {
 public:
  // `command`: begins the guard on a node. Without one there is none.
  using Command = base::Command (*)(const std::string& node, const std::string& job);
  Guard(Command command, std::string job, std::string here)
      : command_(command), job_(std::move(job)), here_(std::move(here)) {}
  ~Guard();

  // Sees to it that one is there, on one of these nodes but this one: an earlier guard on another
  // node does not count. Error: it cannot be started.
  Status ensure(const std::vector<std::string>& nodes);
  int pid() const { return process_ ? process_->pid() : 0; }

 private:
  Command command_;
  std::string job_, here_;
  std::string node_;  // where it is
  std::optional<base::Subprocess> process_;
};

// Whether the job in a line of `scontrol -o show job` has lost the node of its script.
bool is_headless(std::string_view shown);

// Watches the job until it ends or is started again.
Status guard_job(const std::string& job);

}  // namespace ptrain::supervise
