#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "launcher/start/backend.h"

namespace ptrain::start {

// Ranks on this machine, started by Open MPI's mpirun.
class Mpirun : public Backend {
 public:
  // The mpirun of PATH, when it is Open MPI 4.1 or newer (kEnvironment otherwise).
  static Result<Mpirun> find();

  // `single_copy`: ranks may read one another's memory (the kernel's cross-memory attach).
  Mpirun(std::string path, bool is_root, bool single_copy)
      : path_(std::move(path)), is_root_(is_root), single_copy_(single_copy) {}

  base::Command command(const Launch& launch) const override;
  LauncherReport report(std::string_view output) const override;

 private:
  std::string path_;
  bool is_root_;
  bool single_copy_;
};

// The version in the first line of `mpirun --version`; an error when it is another MPI or too old.
Status check_mpirun_version(std::string_view output, const std::string& path);

// The path of an executable in a PATH-like list of folders, or empty.
std::string find_in_path(std::string_view folders, const std::string& name);

}  // namespace ptrain::start
