#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/lists.h"
#include "core/schedule/generators/refuse.h"

namespace ptrain::schedule {
namespace {

// The smallest group from `from` on, itself of as many micro-batches as ranks or more, that leaves
// none or as many for the last: then each chunk of a rank starts a group when the chunk before it
// has. Where PyTorch takes a number of micro-batches at all, this is its group too. One group of
// all always fits.
int next_group(int from, const Problem& problem) {
  for (int group = from; group < problem.num_micro_batches; ++group) {
    const int rest = problem.num_micro_batches % group;
    if (rest == 0 || rest >= problem.num_ranks) return group;
  }
  return problem.num_micro_batches;
}

Result<int> group_of(std::string_view name, const Problem& problem) {
  const int smallest = next_group(problem.num_ranks, problem);
  if (problem.group == 0) return smallest;
  const int nearest = next_group(std::max(problem.group, smallest), problem);
  if (problem.group == nearest) return nearest;
  return refuse(name,
                fmt::format("has groups of {} micro-batches, but {} ranks and {} micro-batches",
                            problem.group, problem.num_ranks, problem.num_micro_batches),
                fmt::format("groups of {}", nearest));
}

// The order of the micro-batches on all chunks of a rank; backwards take the chunks from the last.
std::vector<Cell> table(const Problem& problem, int rank, int group, Work work) {
  std::vector<Cell> cells;
  for (int first = 0; first < problem.num_micro_batches; first += group) {
    const int last = std::min(first + group, problem.num_micro_batches);
    for (int i = 0; i < problem.num_virtual; ++i) {
      const int chunk = work == Work::kForward ? i : problem.num_virtual - 1 - i;
      for (int micro_batch = first; micro_batch < last; ++micro_batch)
        cells.push_back(
            {.work = work, .stage = chunk * problem.num_ranks + rank, .micro_batch = micro_batch});
    }
  }
  return cells;
}

// `rhythm` is that of a rank, given the warm-up of the last one.
template <class RhythmOf>
Result<Schedule> interleaved(std::string_view name, const Problem& problem, RhythmOf rhythm) {
  PTRAIN_TRY(const int group, group_of(name, problem));
  Schedule schedule = empty_schedule(problem);
  for (int rank = 0; rank < problem.num_ranks; ++rank)
    schedule.ranks[static_cast<std::size_t>(rank)] = warm_up_then_pairs(
        table(problem, rank, group, Work::kForward), table(problem, rank, group, Work::kBackward),
        rhythm(rank, (problem.num_virtual - 1) * group));
  return schedule;
}

}  // namespace

Result<Schedule> interleaved_one_f_one_b(const Problem& problem) {
  return interleaved("interleaved_1f1b", problem, [&](int rank, int least) {
    return Rhythm{.warm_up = 2 * (problem.num_ranks - 1 - rank) + least};
  });
}

// One forward more, so that the halves of a pair never wait for each other.
Result<Schedule> kimi_k2(const Problem& problem) {
  return interleaved("kimi_k2", problem, [&](int rank, int least) {
    return Rhythm{.warm_up = 2 * (problem.num_ranks - 1 - rank) + least + 1, .overlapped = true};
  });
}

Result<Schedule> interleaved_zb_1p(const Problem& problem) {
  return interleaved("interleaved_zb_1p", problem, [&](int rank, int least) {
    return Rhythm{.warm_up = problem.num_ranks - 1 - rank + least, .weight_lag = rank};
  });
}

}  // namespace ptrain::schedule
