#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain::preflight {

// What one node finds of itself. Numbers that cannot be found out are -1.
struct NodeReport {
  std::string node;
  std::string binary;             // hash of the ptrain that runs there
  std::string engine;             // of the engine beside it; empty: none
  std::string plan;               // of the run's plan.json as that node reads it; empty: it cannot
  double time_s = -1;             // its clock, since 1970
  bool knows_directory = false;   // it has looked at the run directory; until then these are empty:
  bool sees_mark = false;         // the file that the supervisor has just made in the run directory
  std::string write_error;        // of a file of its own there; empty: written
  std::int64_t disk_free = -1;    // bytes that this user may still write in the run directory
  std::int64_t inodes_free = -1;  // files, likewise
  std::string temporary_error;    // of a file in the folder for temporary files
  std::int64_t memory_available = -1;  // bytes
  std::int64_t open_files = -1;        // that a process may have, at most
  int num_gpus = -1;                   // that a process can use; -1: not looked at (yet)
  double speed = -1;  // of one core, any unit; alike only between nodes of one preflight
  // The node after it in the ring: what went wrong with the way there, and what came through.
  std::string next_error;
  double next_bytes_per_s = -1;
  std::string gpu_error;            // what is wrong with a GPU; empty: nothing
  std::string gpu_tool_error = {};  // of its nvidia-smi, or GPUs that it does not list; empty: none
  bool operator==(const NodeReport&) const = default;
};

// One line of JSON, and back.
std::string to_line(const NodeReport& report);
Result<NodeReport> report_from_line(std::string_view line);

}  // namespace ptrain::preflight
