#pragma once

#include <cstdint>
#include <vector>

namespace ptrain::program {

enum class Work : std::uint8_t { kForward, kBackward };

struct Cell {
  Work work = Work::kForward;
  int stage = 0;
  int micro_batch = 0;
  bool operator==(const Cell&) const = default;
};

// What each pipeline rank does, in order.
using Schedule = std::vector<std::vector<Cell>>;

// One pipeline rank, one stage: F0 B0 F1 B1 ..., or F0 F1 ... without training.
Schedule one_stage(int num_micro_batches, bool train);

}  // namespace ptrain::program
