#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/preflight/node_report.h"

namespace ptrain::preflight {

// What a run needs of its nodes; 0 or empty: nothing.
struct Needs {
  std::vector<std::string> nodes;  // that must report
  std::int64_t disk_bytes = 0;     // in the run directory
  std::int64_t memory_bytes = 0;   // on each node
  std::int64_t open_files = 0;     // in each process
  int gpus = 0;                    // on each node
  bool directory = false;          // the run directory is looked at too
  // When the nodes were asked and when all had answered, by the clock of who asked.
  double asked_s = 0, answered_s = 0;
  bool gpus_too = false;  // GPUs are looked at although none are needed
};

struct Finding {
  bool refuses = false;  // the run cannot start so; else worth knowing
  std::string node;      // empty: of all
  std::string what;
  std::string remedy;
  bool silent = false;  // the node does not answer: the run may go on without it
  bool operator==(const Finding&) const = default;
};

// What is wrong with the nodes, worst first. Pure.
std::vector<Finding> judge(const Needs& needs, const std::vector<NodeReport>& reports);

// "node3: WHAT (REMEDY)"
std::string to_text(const Finding& finding);

}  // namespace ptrain::preflight
