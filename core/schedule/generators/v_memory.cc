#include "core/schedule/generators/building_block.h"
#include "core/schedule/generators/generators.h"

namespace ptrain::schedule {

// About half the stashes of 1F1B: forwards down the V take two slots a rank, those up take one.
Result<Schedule> v_half(const Problem& problem) {
  const int p = problem.num_ranks;
  const int gap = p % 2 == 0 ? 3 : 0;  // keeps the cells of a rank in different slots of the six
  std::vector<BlockSlots> first;
  for (int i = 0; i < p; ++i)
    first.push_back({2 * i, 3 * p - 2 - i, 3 * p - 1 + gap + 2 * i, 6 * p - 2 + gap - i});
  return repeat_block(first, problem);
}

// About a third: every hop takes one slot.
Result<Schedule> v_min(const Problem& problem) {
  const int p = problem.num_ranks;
  const int gap = p % 3 == 0 ? 2 : 0;
  std::vector<BlockSlots> first;
  for (int i = 0; i < p; ++i)
    first.push_back({i, 2 * p - 1 - i, 2 * p + gap + i, 4 * p + gap - 1 - i});
  return repeat_block(first, problem);
}

}  // namespace ptrain::schedule
