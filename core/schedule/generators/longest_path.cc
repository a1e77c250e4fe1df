#include "core/schedule/generators/longest_path.h"

#include <algorithm>
#include <tuple>

#include "core/schedule/execute.h"
#include "core/schedule/generators/lists.h"
#include "core/schedule/positions.h"

namespace ptrain::schedule {
namespace {

// How long work counts in a path.
int length_of(const Cell& cell) { return cell.work == Work::kForward ? 2 : 4; }

// The schedule of as many ranks as stages.
Schedule one_stage_a_rank(const Problem& problem, int extra_forwards) {
  Problem wide = problem;
  wide.num_ranks = problem.num_ranks * problem.num_virtual;
  wide.num_virtual = 1;
  Schedule stages = empty_schedule(wide);
  for (int stage = 0; stage < stages.num_stages; ++stage)
    stages.ranks[static_cast<std::size_t>(stage)] =
        warm_up_then_pairs(all_micro_batches(Work::kForward, stage, problem.num_micro_batches),
                           all_micro_batches(Work::kBackward, stage, problem.num_micro_batches),
                           {.warm_up = stages.num_stages - stage + extra_forwards});
  return stages;
}

// Every cell after all that it needs.
std::vector<Position> in_order_of_start(const Schedule& stages, const Positions& positions) {
  const auto spans = execute(stages, positions, uniform_timing(stages, {})).spans;
  std::vector<Position> cells;
  for (std::size_t stage = 0; stage < spans.size(); ++stage)
    for (std::size_t step = 0; step < spans[stage].size(); ++step)
      cells.push_back({static_cast<int>(stage), static_cast<int>(step)});
  std::ranges::stable_sort(cells, {}, [&](const Position& at) {
    return spans[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.step)].start;
  });
  return cells;
}

// By stage and step: the length of the longest path from a cell to the end.
std::vector<std::vector<int>> paths_of(const Schedule& stages, const Positions& positions) {
  std::vector<std::vector<int>> paths;
  for (const auto& cells : stages.ranks) paths.emplace_back(cells.size(), 0);
  auto cells = in_order_of_start(stages, positions);
  std::ranges::reverse(cells);
  for (const Position& at : cells) {
    const auto stage = static_cast<std::size_t>(at.rank);
    const auto step = static_cast<std::size_t>(at.step);
    const Cell& cell = stages.ranks[stage][step];
    const int path = paths[stage][step] += length_of(cell);
    const auto lead_here = [&](const Position& from) {
      int& other = paths[static_cast<std::size_t>(from.rank)][static_cast<std::size_t>(from.step)];
      other = std::max(other, path);
    };
    for (const Position& need : positions.needs(cell)) lead_here(need);
    if (step > 0) lead_here({at.rank, at.step - 1});
  }
  return paths;
}

class Grid {
 public:
  explicit Grid(const Schedule& stages)
      : stages_(stages),
        positions_(stages),
        paths_(paths_of(stages, positions_)),
        next_(stages.ranks.size()),
        done_(stages.ranks.size()) {}

  // The stage of `held` whose cell a rank takes in this slot; -1: none is ready.
  int choose(const std::vector<int>& held) const {
    int chosen = -1;
    for (const int stage : held)
      if (is_ready(stage) && (chosen < 0 || rank_of(stage) < rank_of(chosen))) chosen = stage;
    return chosen;
  }

  const Cell& take(int stage) {
    const auto at = static_cast<std::size_t>(stage);
    return stages_.ranks[at][next_[at]++];
  }

  // What was taken in this slot can be needed in the next.
  void end_slot() { done_ = next_; }

  bool has_ended() const {
    return std::ranges::equal(done_, stages_.ranks, [](std::size_t done, const auto& cells) {
      return done == cells.size();
    });
  }

 private:
  const Cell& head(int stage) const {
    const auto at = static_cast<std::size_t>(stage);
    return stages_.ranks[at][next_[at]];
  }

  bool is_ready(int stage) const {
    const auto at = static_cast<std::size_t>(stage);
    if (next_[at] == stages_.ranks[at].size()) return false;
    const Needs needs = positions_.needs(head(stage));
    return std::ranges::all_of(needs, [&](const Position& need) {
      return static_cast<std::size_t>(need.step) < done_[static_cast<std::size_t>(need.rank)];
    });
  }

  // Longest path first, then backwards, then the oldest micro-batch, then the first stage.
  std::tuple<int, bool, int, int> rank_of(int stage) const {
    const auto at = static_cast<std::size_t>(stage);
    const Cell& cell = head(stage);
    return {-paths_[at][next_[at]], cell.work == Work::kForward, cell.micro_batch, stage};
  }

  const Schedule& stages_;
  Positions positions_;
  std::vector<std::vector<int>> paths_;
  std::vector<std::size_t> next_;
  std::vector<std::size_t> done_;  // as of the slots before
};

}  // namespace

Schedule longest_path_first(const Problem& problem, Placement placement, int extra_forwards) {
  const Schedule stages = one_stage_a_rank(problem, extra_forwards);
  std::vector<std::vector<int>> held(static_cast<std::size_t>(problem.num_ranks));
  for (int stage = 0; stage < stages.num_stages; ++stage)
    held[static_cast<std::size_t>(rank_of_stage(placement, stage, problem))].push_back(stage);
  Schedule schedule = empty_schedule(problem);
  for (Grid grid(stages); !grid.has_ended(); grid.end_slot())
    for (std::size_t rank = 0; rank < held.size(); ++rank)
      if (const int stage = grid.choose(held[rank]); stage >= 0)
        schedule.ranks[rank].push_back(grid.take(stage));
  return schedule;
}

}  // namespace ptrain::schedule
