#include "core/schedule/generators/lists.h"

#include <algorithm>

namespace ptrain::schedule {
namespace {

Cell with(Cell cell, Work work) {
  cell.work = work;
  return cell;
}

}  // namespace

Schedule empty_schedule(const Problem& problem) {
  Schedule schedule;
  schedule.num_stages = problem.num_ranks * problem.num_virtual;
  schedule.num_micro_batches = problem.num_micro_batches;
  schedule.ranks.resize(static_cast<std::size_t>(problem.num_ranks));
  return schedule;
}

std::vector<Cell> all_micro_batches(Work work, int stage, int num_micro_batches) {
  std::vector<Cell> cells;
  for (int micro_batch = 0; micro_batch < num_micro_batches; ++micro_batch)
    cells.push_back({.work = work, .stage = stage, .micro_batch = micro_batch});
  return cells;
}

std::vector<Cell> warm_up_then_pairs(const std::vector<Cell>& forwards,
                                     const std::vector<Cell>& backwards, const Rhythm& rhythm) {
  const std::size_t all = forwards.size();
  const bool split = rhythm.weight_lag >= 0;
  const std::size_t lag = split ? std::min(static_cast<std::size_t>(rhythm.weight_lag), all) : 0;
  const std::size_t warm_up = std::min(static_cast<std::size_t>(rhythm.warm_up), all);
  std::vector<Cell> cells(forwards.begin(), forwards.begin() + static_cast<long>(warm_up));
  for (std::size_t i = 0; i < all; ++i) {
    const bool pairs = warm_up + i < all;
    if (pairs) cells.push_back(forwards[warm_up + i]);
    cells.push_back(split ? with(backwards[i], Work::kBackwardInput) : backwards[i]);
    if (pairs && rhythm.overlapped)
      cells[cells.size() - 2].pair = cells.back().pair = static_cast<int>(i);
    if (split && i >= lag) cells.push_back(with(backwards[i - lag], Work::kBackwardWeight));
  }
  for (std::size_t i = split ? all - lag : all; i < all; ++i)
    cells.push_back(with(backwards[i], Work::kBackwardWeight));
  return cells;
}

}  // namespace ptrain::schedule
