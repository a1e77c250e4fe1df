#include <algorithm>
#include <array>

#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/lists.h"

namespace ptrain::schedule {
namespace {

// The list of one rank of a V; each kind of work on each chunk takes its micro-batches in order.
class RankList {
 public:
  RankList(int rank, int num_ranks) : stages_{rank, 2 * num_ranks - 1 - rank} {}

  void forward(int chunk) { add(Work::kForward, chunk); }
  void input(int chunk) { add(Work::kBackwardInput, chunk); }
  void weight(int chunk) { add(Work::kBackwardWeight, chunk); }

  void backward(int chunk) {
    input(chunk);
    weight(chunk);
  }

  int done(Work work, int chunk) const { return next_[index(work, chunk)]; }

  std::vector<Cell> of_micro_batches(int num_micro_batches) const {
    std::vector<Cell> kept;
    std::ranges::copy_if(cells_, std::back_inserter(kept),
                         [&](const Cell& cell) { return cell.micro_batch < num_micro_batches; });
    return kept;
  }

 private:
  static std::size_t index(Work work, int chunk) {
    return 2 * static_cast<std::size_t>(work) + static_cast<std::size_t>(chunk);
  }

  void add(Work work, int chunk) {
    cells_.push_back({.work = work,
                      .stage = stages_[static_cast<std::size_t>(chunk)],
                      .micro_batch = next_[index(work, chunk)]++});
  }

  std::array<int, 2> stages_;
  std::array<int, 8> next_{};
  std::vector<Cell> cells_;
};

// In `num_micro_batches` >= 2p - 1.
void fill(RankList& list, int rank, int num_ranks, int num_micro_batches) {
  const int after = num_ranks - rank;
  for (int i = 0; i < 2 * after - 1; ++i) list.forward(0);
  for (int i = 0; i < rank; ++i) {
    list.forward(1);
    list.forward(0);
  }
  for (int i = 0; i < after; ++i) {
    list.forward(1);
    list.backward(1);
  }
  while (list.done(Work::kForward, 1) < num_micro_batches) {
    if (list.done(Work::kForward, 0) < num_micro_batches) list.forward(0);
    list.backward(0);
    list.forward(1);
    list.backward(1);
  }
  for (int i = 0; i < rank; ++i) {
    list.input(0);
    list.input(1);
  }
  for (int i = 0; i < after; ++i) list.backward(0);
  for (const int chunk : {1, 0})
    while (list.done(Work::kBackwardWeight, chunk) < num_micro_batches) list.weight(chunk);
}

}  // namespace

// What is made for 2p - 1 micro-batches serves fewer too: the rest is left out.
Result<Schedule> zb_v(const Problem& problem) {
  Schedule schedule = empty_schedule(problem);
  for (int rank = 0; rank < problem.num_ranks; ++rank) {
    RankList list(rank, problem.num_ranks);
    fill(list, rank, problem.num_ranks,
         std::max(problem.num_micro_batches, 2 * problem.num_ranks - 1));
    schedule.ranks[static_cast<std::size_t>(rank)] =
        list.of_micro_batches(problem.num_micro_batches);
  }
  return schedule;
}

}  // namespace ptrain::schedule
