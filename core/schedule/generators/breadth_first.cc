#include <algorithm>

#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/lists.h"

namespace ptrain::schedule {
namespace {

// Every micro-batch through a chunk before the next chunk, so that the weights of a chunk are
// needed twice a step; `newest_first` is the order of backwards.
Schedule by_chunks(const Problem& problem, bool newest_first) {
  Schedule schedule = empty_schedule(problem);
  for (int rank = 0; rank < problem.num_ranks; ++rank) {
    auto& cells = schedule.ranks[static_cast<std::size_t>(rank)];
    for (int stage = rank; stage < schedule.num_stages; stage += problem.num_ranks)
      std::ranges::copy(all_micro_batches(Work::kForward, stage, problem.num_micro_batches),
                        std::back_inserter(cells));
    for (int stage = schedule.num_stages - problem.num_ranks + rank; stage >= 0;
         stage -= problem.num_ranks) {
      auto backwards = all_micro_batches(Work::kBackward, stage, problem.num_micro_batches);
      if (newest_first) std::ranges::reverse(backwards);
      std::ranges::copy(backwards, std::back_inserter(cells));
    }
  }
  return schedule;
}

}  // namespace

Result<Schedule> breadth_first(const Problem& problem) { return by_chunks(problem, true); }

Result<Schedule> breadth_first_fifo(const Problem& problem) { return by_chunks(problem, false); }

}  // namespace ptrain::schedule
