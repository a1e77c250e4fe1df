#pragma once

#include <vector>

#include "core/schedule/positions.h"
#include "core/schedule/schedule.h"

namespace ptrain::program {

// What pipeline ranks know of each other, since cells need what others have made.
class Knowledge {
 public:
  // The schedule must be one that ends (schedule::check).
  explicit Knowledge(const schedule::Schedule& schedule);

  // How many cells of `other` have ended for sure when cell `step` of `rank` begins.
  int num_ended(int rank, int step, int other) const {
    return known_[static_cast<std::size_t>(rank)][row(step) + static_cast<std::size_t>(other)];
  }

 private:
  std::size_t row(int step) const { return static_cast<std::size_t>(step) * num_ranks_; }
  bool advance(const schedule::Schedule& schedule, const schedule::Positions& positions, int rank);

  std::size_t num_ranks_;
  std::vector<std::vector<int>> known_;  // by rank; then a row a cell, a column a rank
  std::vector<int> next_;                // by rank: its first cell of which nothing is known yet
};

}  // namespace ptrain::program
