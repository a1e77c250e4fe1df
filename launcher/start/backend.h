#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "launcher/base/subprocess.h"

namespace ptrain::start {

// One attempt: so many ranks of `WORKER worker --request REQUEST`.
struct Launch {
  std::string worker;  // absolute path of the ptrain binary
  std::string request_file;
  std::string token;  // of the control connection
  int num_ranks = 1;
  int threads = 1;                       // of one rank
  int num_nodes = 1;                     // each with as many ranks
  std::vector<std::string> nodes = {};   // their names; empty: whichever the backend takes
  std::vector<std::string> inside = {};  // stands before the worker: what opens its container
  bool on_gpus = false;                  // ranks run on the GPUs of their nodes
};

// What the launcher program itself said about the rank that ended the job. rank -1: nothing.
struct LauncherReport {
  int rank = -1;
  int signal = 0;
  int code = 0;
  std::vector<std::string> lost_nodes = {};  // their ranks can say nothing any more
  std::string what = {};       // its own words on these, or on a rank that could not be started
  bool out_of_memory = false;  // the kernel killed it for want of memory
  bool operator==(const LauncherReport&) const = default;
};

// A way to start ranks: gives the command that does, and reads what that command wrote.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual base::Command command(const Launch& launch) const = 0;
  virtual LauncherReport report(std::string_view output) const = 0;
  // The address, as numbers, at which ranks reach this machine.
  virtual Result<std::string> control_host() const = 0;
  // Whether SIGTERM makes the launcher kill all ranks at once. Else they are below it, on this
  // machine.
  virtual bool kills_on_term() const = 0;
  // Whether it gives each rank cores of its own.
  virtual bool binds(const Launch& launch) const = 0;
  // That a process on this machine has open for each rank, wherever that is.
  virtual int files_of_rank() const = 0;
};

}  // namespace ptrain::start
