#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "launcher/start/backend.h"

namespace ptrain::start {

// Ranks on this machine, started by Open MPI's mpirun.
class Mpirun : public Backend {
 public:
  // The mpirun of PATH, when it is Open MPI 4.1 or newer (kEnvironment otherwise).
  static Result<Mpirun> find();

  struct Traits {
    int major = 4;  // version of Open MPI
    bool is_root = false;
    bool single_copy = true;  // ranks may read one another's memory (cross-memory attach)
  };
  Mpirun(std::string path, Traits traits) : path_(std::move(path)), traits_(traits) {}

  base::Command command(const Launch& launch) const override;
  LauncherReport report(std::string_view output) const override;
  Result<std::string> control_host() const override { return "127.0.0.1"; }
  bool kills_on_term() const override { return false; }

 private:
  std::vector<std::string> components() const;

  std::string path_;
  Traits traits_;
};

// The major version in the first line of `mpirun --version`; an error when it is another MPI or too
// old.
Result<int> mpirun_version(std::string_view output, const std::string& path);

// Whether one process may read the memory of another. Containers often forbid the call by seccomp;
// Open MPI then fails in the first large message.
bool can_read_memory_of_others();

// The path of an executable in a PATH-like list of folders, or empty.
std::string find_in_path(std::string_view folders, const std::string& name);
// The same in this process's PATH.
std::string find_program(const std::string& name);

}  // namespace ptrain::start
