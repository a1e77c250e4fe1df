#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ptrain::schedule {

// F, B (both gradients), I (of the input), W (of the weights). S: a rank's share of what the last
// stage does with a micro-batch, which needs all ranks at the same time (shared_work.h); the rank
// of the last stage does its own within B or I. Lists in files have none.
enum class Work : std::uint8_t { kForward, kBackward, kBackwardInput, kBackwardWeight, kShared };

// One piece of work on one stage.
struct Cell {
  Work work = Work::kForward;
  int stage = 0;
  int micro_batch = 0;
  int slice = 0;  // of the micro-batch's sequence
  int copy = 0;   // of the weights, where a schedule holds the model twice
  int pair = -1;  // neighbours of a rank with one number run at the same time; -1: alone
  bool operator==(const Cell&) const = default;
};

// What each pipeline rank does, in order. Stages count in model order.
struct Schedule {
  int num_stages = 1;
  int num_micro_batches = 1;
  int num_slices = 1;
  std::vector<std::vector<Cell>> ranks;
  int num_ranks() const { return static_cast<int>(ranks.size()); }
  bool operator==(const Schedule&) const = default;
};

// Everything a generator may depend on. Costs are those of one virtual stage, in any unit.
struct Costs {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  double communication = 0;  // one hop between ranks; nobody waits for it but the receiver
  double overlapped = 0;     // of a pair; 0: the sum of its halves
  bool operator==(const Costs&) const = default;
};
struct Problem {
  int num_ranks = 1;
  int num_virtual = 1;  // stages that a rank holds, each copy of the weights counted
  int num_micro_batches = 1;
  int group = 0;  // micro-batches that an interleaved order takes through a stage; 0: the smallest
  Costs costs;
  double memory_cap = 0;  // stashes a rank may hold, in micro-batches of one virtual stage; 0: any
};

// Stages x micro-batches x slices that are worked on: larger ones are refused, for their tables
// would fill the memory.
inline constexpr std::int64_t kMostPlaces = 10'000'000;

char letter_of(Work work);

// "2F7"; "2F7.1" in slice 1; "2F7*1" or "2F7.0*1" on the second copy of the weights.
std::string to_text(const Cell& cell);

// The cells of a rank that run together from `first` on: a pair, one alone, or none at the end.
std::span<const Cell> together(const std::vector<Cell>& cells, std::size_t first);

int num_copies(const Schedule& schedule);

// The rank of each stage of one copy, -1 where no rank works on it.
std::vector<int> ranks_of_stages(const Schedule& schedule, int copy = 0);

}  // namespace ptrain::schedule
