#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/generators/dualpipe_rank.h"
#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/lists.h"
#include "core/schedule/generators/refuse.h"

namespace ptrain::schedule {
namespace {

Status check(const Problem& problem) {
  const int p = problem.num_ranks;
  const int m = problem.num_micro_batches;
  if (p % 2 != 0)
    return refuse("dualpipe", fmt::format("has {} ranks, an odd number", p),
                  fmt::format("{} ranks", p + 1));
  if (m % 2 != 0 || m < 2 * p)
    return refuse("dualpipe",
                  fmt::format("has {} micro-batches, not an even number of at least twice its {} "
                              "ranks",
                              m, p),
                  fmt::format("{} micro-batches", std::max(2 * p, m - m % 2)));
  return {};
}

}  // namespace

Result<Schedule> dualpipe(const Problem& problem) {
  PTRAIN_CHECK(check(problem));
  const int p = problem.num_ranks;
  const int half = problem.num_micro_batches / 2;
  Schedule schedule = empty_schedule(problem);
  schedule.num_stages /= 2;  // each lies on two ranks
  for (int rank = 0; rank < p; ++rank) {
    const Cell down{.stage = rank};
    const Cell up{.stage = p - 1 - rank, .micro_batch = half, .copy = 1};
    const bool near_top = rank < p / 2;
    schedule.ranks[static_cast<std::size_t>(rank)] =
        dualpipe_rank({.position = std::min(rank, p - 1 - rank),
                       .num_positions = p / 2,
                       .num_micro_batches = half,
                       .near = near_top ? down : up,
                       .far = near_top ? up : down});
  }
  return schedule;
}

}  // namespace ptrain::schedule
