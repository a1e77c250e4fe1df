#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/directory.h"

namespace ptrain::supervise {

// Makes the run directory and its folders, for the owner alone. One that exists already is refused.
Result<run::Directory> create_run(const std::string& path);

// The same at `path`, or where that exists at the first of PATH-2, PATH-3, ... that does not: runs
// that start in the same second get a directory each.
Result<run::Directory> create_next_run(const std::string& path);

// Whether either would be refused, before anything is written: `path` may not exist already (the
// first only), and what is to hold it must be a folder that can be written.
Status check_new_run(const std::string& path);
Status check_next_run(const std::string& path);

// The same for one attempt's folder of logs.
Status create_attempt(const run::Directory& directory, int attempt);

// An existing run directory; refused when it holds no plan.
Result<run::Directory> open_run(const std::string& path);

// "`ptrain resume RUN`", as a shell takes it: what a message tells the user to give.
std::string resume_command(const run::Directory& directory);

// The attempt that comes after all that have a folder; the first is 1.
int next_attempt(const run::Directory& directory);

// Tells when the run directory was removed or moved away while a supervisor works on it.
class FolderWatch {
 public:
  explicit FolderWatch(const run::Directory& directory);
  bool is_there() const;

 private:
  run::Directory directory_;
  std::uint64_t device_ = 0, inode_ = 0;  // of the folder when it was still there
};

// Steps of the published checkpoints by their folders' names, rising. Whether one is whole is known
// only to the engine, which falls back to an older one.
std::vector<std::int64_t> checkpoint_steps(const run::Directory& directory);
// The last of these; -1: there is none.
std::int64_t newest_step(const run::Directory& directory);

// Held while a supervisor works on a run; it ends with the process. Holds the supervisor's pid.
class RunLock {
 public:
  static Result<RunLock> take(const run::Directory& directory);
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;

 private:
  explicit RunLock(int file) : file_(file) {}
  int file_ = -1;
};

// The pid of the supervisor that works on the run; 0: none.
int supervisor_of(const run::Directory& directory);

}  // namespace ptrain::supervise
