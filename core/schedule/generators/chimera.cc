#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/lists.h"
#include "core/schedule/generators/refuse.h"
#include "core/schedule/generators/zigzag.h"

namespace ptrain::schedule {
namespace {

struct Slot {
  int slot = 0;
  Cell cell;
};

// One direction of one block of micro-batches. With slots of one F or one B, F goes down the stages
// and B comes back without a wait, and a micro-batch follows the one before it two slots later: the
// other direction has the slots between.
struct Stream {
  int copy = 0;
  int first_micro_batch = 0;
  int num_micro_batches = 0;
  int first_slot = 0;
};

// The second copy lies the other way round.
int rank_of(int stage, int copy, int num_ranks) {
  const int rank = zigzag_rank(stage, num_ranks);
  return copy == 0 ? rank : num_ranks - 1 - rank;
}

void put(const Stream& stream, int num_stages, std::vector<std::vector<Slot>>& ranks) {
  const int num_ranks = static_cast<int>(ranks.size());
  for (int i = 0; i < stream.num_micro_batches; ++i)
    for (int stage = 0; stage < num_stages; ++stage) {
      const int start = stream.first_slot + 2 * i;
      const Cell forward{
          .stage = stage, .micro_batch = stream.first_micro_batch + i, .copy = stream.copy};
      Cell backward = forward;
      backward.work = Work::kBackward;
      auto& slots = ranks[static_cast<std::size_t>(rank_of(stage, stream.copy, num_ranks))];
      slots.push_back({start + stage, forward});
      slots.push_back({start + 2 * num_stages - 1 - stage, backward});
    }
}

// Blocks of as many micro-batches as ranks, half of them in each direction, one block after the
// other.
Result<Schedule> mirrored(std::string_view name, const Problem& problem) {
  const int p = problem.num_ranks;
  const int m = problem.num_micro_batches;
  if (p % 2 != 0)
    return refuse(name, fmt::format("has {} ranks, an odd number", p),
                  fmt::format("{} ranks", p + 1));
  if (m % p != 0)
    return refuse(name, fmt::format("has {} micro-batches, no multiple of its {} ranks", m, p),
                  fmt::format("{} micro-batches", std::max(p, m / p * p)));
  Schedule schedule = empty_schedule(problem);
  schedule.num_stages /= 2;  // each lies on two ranks
  std::vector<std::vector<Slot>> ranks(static_cast<std::size_t>(p));
  for (int block = 0; block < m / p; ++block)
    for (int copy = 0; copy < 2; ++copy)
      put({copy, block * p + copy * p / 2, p / 2, block * 2 * schedule.num_stages},
          schedule.num_stages, ranks);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::ranges::sort(ranks[rank], {}, &Slot::slot);
    for (const Slot& slot : ranks[rank]) schedule.ranks[rank].push_back(slot.cell);
  }
  return schedule;
}

}  // namespace

Result<Schedule> chimera(const Problem& problem) { return mirrored("chimera", problem); }

// Chimera over two chunks of each direction, so that each direction is a V.
Result<Schedule> bitpipe(const Problem& problem) { return mirrored("bitpipe", problem); }

}  // namespace ptrain::schedule
