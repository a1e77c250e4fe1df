#pragma once

#include <string>

#include "launcher/preflight/node_report.h"

namespace ptrain::preflight {

// What a node is asked to look at.
struct NodeTask {
  std::string binary;         // path of ptrain
  std::string engine;         // path of its engine; empty: none
  std::string run_directory;  // empty: only the machine is looked at
  std::string mark;           // what the supervisor has written to mark_file(run_directory)
  bool gpus = false;          // whether its GPUs are healthy is looked at too
};

std::string mark_file(const std::string& run_directory);
// The file that a node writes there, with the mark in it.
std::string answer_file(const std::string& run_directory, const std::string& node);

// The name of this machine, by which Slurm knows it.
std::string node_name();

// Looks at this machine; takes about a quarter of a second.
NodeReport check_node(const NodeTask& task);

// How fast one core multiplies and adds, by the best of many rounds in so many seconds: what else
// runs on it for a moment does not count.
double core_speed(double seconds);

}  // namespace ptrain::preflight
