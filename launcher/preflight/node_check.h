#pragma once

#include <chrono>
#include <string>

#include "launcher/preflight/node_report.h"

namespace ptrain::preflight {

// What a node is asked to look at.
struct NodeTask {
  std::string binary;         // path of ptrain
  std::string engine;         // path of its engine; empty: none
  std::string run_directory;  // empty: only the machine is looked at
  std::string mark;           // what the supervisor has written to mark_file(run_directory, mark)
  std::string plan;           // hash of its plan.json; empty: none is expected
};

// No two preflights have the same files: that one was not there before is kept for a minute by some
// file systems.
std::string mark_file(const std::string& run_directory, const std::string& mark);
// The file that a node writes there, with the mark in it.
std::string answer_file(const std::string& run_directory, const std::string& mark,
                        const std::string& node);

// The name of this machine, by which Slurm knows it.
std::string node_name();

// Looks at this machine but for its GPUs; takes about a quarter of a second.
NodeReport check_node(const NodeTask& task);

// Looks at the run directory from here. What others wrote there may be seen late (see seen_within
// in launcher/base/file.h): waits for it at most so long.
void look_at_directory(const NodeTask& task, std::chrono::milliseconds limit, NodeReport& report);

// How fast one core multiplies and adds, by the best of many rounds in so many seconds: what else
// runs on it for a moment does not count.
double core_speed(double seconds);

}  // namespace ptrain::preflight
