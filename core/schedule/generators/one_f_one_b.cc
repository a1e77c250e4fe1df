#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/lists.h"

namespace ptrain::schedule {
namespace {

// One stage a rank, micro-batches in order both ways; `rhythm` is that of a rank.
template <class RhythmOf>
Schedule in_order(const Problem& problem, RhythmOf rhythm) {
  Schedule schedule = empty_schedule(problem);
  for (int rank = 0; rank < problem.num_ranks; ++rank)
    schedule.ranks[static_cast<std::size_t>(rank)] =
        warm_up_then_pairs(all_micro_batches(Work::kForward, rank, problem.num_micro_batches),
                           all_micro_batches(Work::kBackward, rank, problem.num_micro_batches),
                           rhythm(problem.num_ranks - 1 - rank));
  return schedule;
}

}  // namespace

Result<Schedule> one_f_one_b(const Problem& problem) {
  return in_order(problem, [](int after) { return Rhythm{.warm_up = after}; });
}

Result<Schedule> eager_one_f_one_b(const Problem& problem) {
  return in_order(problem, [](int after) { return Rhythm{.warm_up = 2 * after}; });
}

// One forward more, so that the halves of a pair never wait for each other.
Result<Schedule> overlapped_one_f_one_b(const Problem& problem) {
  return in_order(problem,
                  [](int after) { return Rhythm{.warm_up = 2 * after + 1, .overlapped = true}; });
}

Result<Schedule> zb_h1(const Problem& problem) {
  const int last = problem.num_ranks - 1;
  return in_order(
      problem, [last](int after) { return Rhythm{.warm_up = after, .weight_lag = last - after}; });
}

Result<Schedule> zb_h2(const Problem& problem) {
  const int last = problem.num_ranks - 1;
  return in_order(problem, [last](int after) {
    return Rhythm{.warm_up = 2 * after, .weight_lag = 2 * (last - after)};
  });
}

}  // namespace ptrain::schedule
