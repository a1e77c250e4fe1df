#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// Which of the cells that are ready goes first. A weight gradient never does: it fills gaps.
enum class Preference : std::uint8_t {
  kOldestBackward,   // backwards, the oldest micro-batch first; then forwards likewise
  kDeepestBackward,  // backwards, the stage nearest to the loss first; then forwards likewise
  kDeepest,          // the stage nearest to the loss first, its backward before its forward
};

// How ranks choose, by what has arrived when they are free. A forward needs room for its stash.
struct DispatchRules {
  std::vector<int> rank_of_stage;
  Preference preference = Preference::kOldestBackward;
  bool split_backward = true;
  int cap = 0;                       // stashes of a rank; 0: any number
  std::vector<int> first_stage_cap;  // those of a rank's first stage, one a rank; empty: cap
};

// The order that comes out under `problem.costs`. Every rank must have room for a stash of each of
// its stages. O(n log n) in the number of cells.
Schedule dispatch(const Problem& problem, const DispatchRules& rules);

}  // namespace ptrain::schedule
