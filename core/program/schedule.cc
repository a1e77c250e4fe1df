#include "core/program/schedule.h"

namespace ptrain::program {

Schedule one_stage(int num_micro_batches, bool train) {
  std::vector<Cell> cells;
  for (int m = 0; m < num_micro_batches; ++m) {
    cells.push_back({Work::kForward, 0, m});
    if (train) cells.push_back({Work::kBackward, 0, m});
  }
  return {cells};
}

}  // namespace ptrain::program
