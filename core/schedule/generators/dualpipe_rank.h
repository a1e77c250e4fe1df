#pragma once

#include <array>
#include <vector>

#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// A rank of a DualPipe holds two stages whose micro-batches meet there: of `near` they come from
// the end of the pipeline that is closer, of `far` from the other end. arXiv 2412.19437.
struct DualPipeRank {
  int position = 0;  // from the closer end
  int num_positions = 1;
  int num_micro_batches = 2;  // of each of the two stages, at least 2 * num_positions
  Cell near;                  // stage, copy, and the first micro-batch
  Cell far;
};

std::vector<Cell> dualpipe_rank(const DualPipeRank& rank);

}  // namespace ptrain::schedule
