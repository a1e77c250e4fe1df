#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "core/schedule/positions.h"
#include "core/schedule/schedule.h"

namespace ptrain::test {

struct RandomSchedule {
  int num_ranks = 2;
  int num_virtual = 1;  // stages of a rank, on any of the ranks
  int num_micro_batches = 2;
  int num_slices = 1;
};

namespace random_schedule {

// All cells of a schedule, in no order; some backwards are split.
inline std::vector<schedule::Cell> all_cells(const RandomSchedule& sizes, std::mt19937& random) {
  using schedule::Work;
  std::vector<schedule::Cell> cells;
  for (int stage = 0; stage < sizes.num_ranks * sizes.num_virtual; ++stage)
    for (int micro_batch = 0; micro_batch < sizes.num_micro_batches; ++micro_batch)
      for (int slice = 0; slice < sizes.num_slices; ++slice) {
        const auto add = [&](Work work) {
          cells.push_back(
              {.work = work, .stage = stage, .micro_batch = micro_batch, .slice = slice});
        };
        add(Work::kForward);
        const bool split = random() % 2 == 0;
        add(split ? Work::kBackwardInput : Work::kBackward);
        if (split) add(Work::kBackwardWeight);
      }
  std::ranges::shuffle(cells, random);
  return cells;
}

// By stage; every rank has `num_virtual`.
inline std::vector<int> ranks_of_stages(const RandomSchedule& sizes, std::mt19937& random) {
  std::vector<int> ranks;
  for (int stage = 0; stage < sizes.num_ranks * sizes.num_virtual; ++stage)
    ranks.push_back(stage % sizes.num_ranks);
  std::ranges::shuffle(ranks, random);
  return ranks;
}

}  // namespace random_schedule

// Any order that ranks can run: each cell in turn is one of those that need nothing undone.
inline schedule::Schedule random_legal(const RandomSchedule& sizes, std::mt19937& random) {
  auto cells = random_schedule::all_cells(sizes, random);
  const auto ranks = random_schedule::ranks_of_stages(sizes, random);
  schedule::Schedule all{.num_stages = static_cast<int>(ranks.size()),
                         .num_micro_batches = sizes.num_micro_batches,
                         .num_slices = sizes.num_slices,
                         .ranks = {cells}};
  const schedule::Positions positions(all);
  std::vector<bool> done(cells.size(), false);
  all.ranks.assign(static_cast<std::size_t>(sizes.num_ranks), {});
  for (std::size_t count = 0; count < cells.size();) {
    const std::size_t start = random() % cells.size();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::size_t at = (start + i) % cells.size();
      const auto needs = positions.needs(cells[at]);
      const bool ready = std::ranges::all_of(
          needs, [&](const auto& need) { return done[static_cast<std::size_t>(need.step)]; });
      if (done[at] || !ready) continue;
      done[at] = true;
      ++count;
      const int rank = ranks[static_cast<std::size_t>(cells[at].stage)];
      all.ranks[static_cast<std::size_t>(rank)].push_back(cells[at]);
      break;
    }
  }
  return all;
}

}  // namespace ptrain::test
