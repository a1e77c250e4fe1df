#include "core/schedule/generators/dispatch.h"
#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/zigzag.h"

namespace ptrain::schedule {

// A wave is a way there and back over the ranks. The order is that of ranks that never wait while
// they could work; arXiv 2308.15762 draws another.
Result<Schedule> hanayo(const Problem& problem) {
  DispatchRules rules;
  rules.split_backward = false;
  for (int stage = 0; stage < problem.num_ranks * problem.num_virtual; ++stage)
    rules.rank_of_stage.push_back(zigzag_rank(stage, problem.num_ranks));
  Problem even = problem;
  even.costs = {};
  return dispatch(even, rules);
}

}  // namespace ptrain::schedule
