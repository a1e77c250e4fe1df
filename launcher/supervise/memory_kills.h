#pragma once

#include <cstdint>
#include <string>

namespace ptrain::supervise {

// Where the kernel counts the processes it killed because memory ran out, and how often it has.
// A count that rises between two readings is evidence that a SIGKILL came from there.
class MemoryKills {
 public:
  // The counter of the control group that this process (and so its ranks) is in: memory.events of
  // version 2, memory.oom_control of version 1; without one /proc/vmstat, the whole machine's.
  // `root` stands before every path; tests give a folder.
  static MemoryKills find(const std::string& root = "");

  std::int64_t count() const;
  // "in this job's control group" or "on this machine".
  const std::string& where() const { return where_; }

 private:
  MemoryKills(std::string path, std::string where)
      : path_(std::move(path)), where_(std::move(where)) {}

  std::string path_;
  std::string where_;
};

}  // namespace ptrain::supervise
