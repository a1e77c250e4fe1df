#include <fmt/format.h>

#include "core/schedule/generators/dualpipe_rank.h"
#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/lists.h"
#include "core/schedule/generators/refuse.h"

namespace ptrain::schedule {

// One direction of a DualPipe cut off: its micro-batches turn at the last rank and come back.
Result<Schedule> dualpipe_v(const Problem& problem) {
  const int p = problem.num_ranks;
  if (problem.num_micro_batches < 2 * p)
    return refuse("dualpipe_v",
                  fmt::format("has {} micro-batches, less than twice its {} ranks",
                              problem.num_micro_batches, p),
                  fmt::format("{} micro-batches", 2 * p));
  Schedule schedule = empty_schedule(problem);
  for (int rank = 0; rank < p; ++rank)
    schedule.ranks[static_cast<std::size_t>(rank)] =
        dualpipe_rank({.position = rank,
                       .num_positions = p,
                       .num_micro_batches = problem.num_micro_batches,
                       .near = {.stage = rank},
                       .far = {.stage = 2 * p - 1 - rank}});
  return schedule;
}

}  // namespace ptrain::schedule
