#include <algorithm>

#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/lists.h"

namespace ptrain::schedule {
namespace {

// All forwards, then all backwards; `newest_first` frees the stashes in the opposite order.
Schedule fill_and_drain(const Problem& problem, bool newest_first) {
  Schedule schedule = empty_schedule(problem);
  for (int rank = 0; rank < problem.num_ranks; ++rank) {
    const auto forwards = all_micro_batches(Work::kForward, rank, problem.num_micro_batches);
    auto backwards = all_micro_batches(Work::kBackward, rank, problem.num_micro_batches);
    if (newest_first) std::ranges::reverse(backwards);
    schedule.ranks[static_cast<std::size_t>(rank)] =
        warm_up_then_pairs(forwards, backwards, {.warm_up = problem.num_micro_batches});
  }
  return schedule;
}

}  // namespace

Result<Schedule> gpipe(const Problem& problem) { return fill_and_drain(problem, false); }

Result<Schedule> gpipe_lifo(const Problem& problem) { return fill_and_drain(problem, true); }

}  // namespace ptrain::schedule
