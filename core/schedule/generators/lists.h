#pragma once

#include <vector>

#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// A schedule of `problem` whose ranks have nothing to do yet, with one copy of the weights.
Schedule empty_schedule(const Problem& problem);

// One kind of work on one stage, for each micro-batch in order.
std::vector<Cell> all_micro_batches(Work work, int stage, int num_micro_batches);

struct Rhythm {
  int warm_up = 0;          // forwards before the first backward
  bool overlapped = false;  // each forward beside the backward that follows it
  int weight_lag = -1;      // backwards that W comes after its I; -1: backwards are whole
};

// Warm-up forwards, then a forward and a backward in turn, then the backwards that are left. Both
// lists are of one rank and equally long.
std::vector<Cell> warm_up_then_pairs(const std::vector<Cell>& forwards,
                                     const std::vector<Cell>& backwards, const Rhythm& rhythm);

}  // namespace ptrain::schedule
