#pragma once

#include <limits>
#include <vector>

#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// A schedule of split backwards and one copy of the weights on a clock, made for trying many
// orders of it: cells are numbers, and all that does not depend on the order is looked up.
class Timeline {
 public:
  // A place in a rank's list.
  struct Place {
    int rank = 0;
    int step = 0;
  };

  Timeline(const Schedule& schedule, const Problem& problem);

  const std::vector<int>& list(int rank) const { return lists_[static_cast<std::size_t>(rank)]; }
  // Takes the cell at `from` to step `to`, those between move over.
  void move(Place from, int to);
  // Whether a rank's own cells need nothing that comes later, in the room that it has.
  bool is_legal(int rank) const;
  // Puts all on the clock; false where ranks wait for each other, or as soon as the makespan is
  // known to be above `limit`.
  bool run(double limit = std::numeric_limits<double>::infinity());
  double makespan() const { return makespan_; }
  double sum_of_ends() const { return sum_of_ends_; }
  // After run(): cells that end the schedule and all that they waited for without slack.
  std::vector<Place> critical() const;
  Schedule schedule(const Schedule& like) const;

 private:
  // Small, for run() reads them all each time.
  struct Facts {
    double cost = 0;
    double hop = 0;
    int from = -1;   // the cell of another stage that it needs
    int own = -1;    // the cell of its own stage
    int change = 0;  // of the stashes held
    int rank = 0;
  };

  std::vector<Cell> cells_;
  std::vector<Facts> facts_;  // of the cells
  std::vector<std::vector<int>> lists_;
  std::vector<double> ends_;  // of cells; negative: not yet
  std::vector<std::size_t> next_;
  std::vector<double> free_at_;
  std::vector<double> idle_;
  std::vector<int> step_of_;
  std::vector<double> work_;  // of each rank
  double cap_;
  double makespan_ = 0;
  double sum_of_ends_ = 0;
};

}  // namespace ptrain::schedule
