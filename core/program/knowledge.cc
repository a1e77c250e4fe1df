#include "core/program/knowledge.h"

#include <algorithm>

namespace ptrain::program {

using schedule::Cell;
using schedule::Position;

Knowledge::Knowledge(const schedule::Schedule& schedule)
    : num_ranks_(schedule.ranks.size()), known_(num_ranks_), next_(num_ranks_, 0) {
  const schedule::Positions positions(schedule);
  for (std::size_t rank = 0; rank < num_ranks_; ++rank)
    known_[rank].reserve(schedule.ranks[rank].size() * num_ranks_);
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < schedule.num_ranks(); ++rank)
      while (advance(schedule, positions, rank)) moved = true;
  }
}

// Adds the row of the rank's next cell, if those of all that it needs are there.
bool Knowledge::advance(const schedule::Schedule& schedule, const schedule::Positions& positions,
                        int rank) {
  const auto index = static_cast<std::size_t>(rank);
  const auto& cells = schedule.ranks[index];
  const int step = next_[index];
  if (static_cast<std::size_t>(step) == cells.size()) return false;
  const auto needs = positions.needs(cells[static_cast<std::size_t>(step)]);
  for (const Position& need : needs)
    if (need.step >= next_[static_cast<std::size_t>(need.rank)]) return false;
  auto& known = known_[index];
  const std::size_t begin = row(step);
  known.resize(begin + num_ranks_, 0);
  for (std::size_t other = 0; step > 0 && other < num_ranks_; ++other)
    known[begin + other] = known[row(step - 1) + other];
  for (const Position& need : needs) {
    const auto& theirs = known_[static_cast<std::size_t>(need.rank)];
    for (std::size_t other = 0; other < num_ranks_; ++other)
      known[begin + other] = std::max(known[begin + other], theirs[row(need.step) + other]);
    int& ended = known[begin + static_cast<std::size_t>(need.rank)];
    ended = std::max(ended, need.step + 1);
  }
  known[begin + index] = step;
  next_[index] = step + 1;
  return true;
}

}  // namespace ptrain::program
