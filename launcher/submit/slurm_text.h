#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptrain::submit {

// Slurm's words as values. Pure: the texts come from its commands.

// "30" minutes, "30:00", "1:30:00", "2-12", "2-12:30", "2-12:30:00"; none: not a time limit.
// UNLIMITED and INFINITE are the longest time.
std::optional<std::chrono::seconds> time_limit(std::string_view text);

// A line of `scontrol -o show partition`.
struct Partition {
  std::string name;
  bool is_default = false;
  bool is_up = true;
  int num_nodes = 0;
  int most_nodes = 0;                 // of a job; 0: as many as there are
  std::string longest;                // time of a job, as Slurm writes it
  std::vector<std::string> accounts;  // that may use it; empty: all
  bool operator==(const Partition&) const = default;
};
std::vector<Partition> partitions(std::string_view text);

enum class NodeState { kIdle, kBusy, kDrained, kDown };

// A line of `scontrol -o show node`.
struct NodeLine {
  std::string name;
  int cores = 1;
  int threads_per_core = 1;
  std::int64_t memory_bytes = 0;  // 0: not configured
  std::vector<std::string> features;
  std::vector<std::string> partitions;
  NodeState state = NodeState::kIdle;
  bool operator==(const NodeLine&) const = default;
};
std::vector<NodeLine> node_lines(std::string_view text);

// "IDLE+DRAIN" is drained: what it says last of getting a job. One that sleeps is woken for jobs.
NodeState node_state(std::string_view words);
// Whether jobs get it, now or when those that it runs have ended.
bool is_usable(const NodeLine& node);

// "a,b" is a, b; "(null)" and "" are nothing.
std::vector<std::string> words_of(std::string_view list);

}  // namespace ptrain::submit
