#pragma once

#include <cstdint>

#include "core/schedule/schedule.h"

namespace ptrain::schedule {

struct Annealing {
  int num_moves = 0;
  double temperature = 0;  // at the start, in time; falls to nothing
  double good_enough = 0;  // a makespan at which to stop
  std::uint32_t seed = 0;
};

// Moves cells of a schedule of split backwards a few places along their ranks' lists, where they
// keep a chain without slack up, and takes what is shorter, or a little longer while it is warm. No
// rank comes to hold more than problem.memory_cap stashes, if it does not at the start. The best
// that was met, the same for the same seed. O(moves * cells).
Schedule anneal(const Schedule& start, const Problem& problem, const Annealing& annealing);

}  // namespace ptrain::schedule
