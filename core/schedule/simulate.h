#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/schedule/execute.h"

namespace ptrain::schedule {

// The most stashes a rank holds at once; a stash is one micro-batch (or slice) of one stage, from
// the start of its F. What frees it: the end of B or W; the end of B or I; half I and half W.
struct PeakStashes {
  double weight = 0;
  double input = 0;
  double half = 0;
  bool operator==(const PeakStashes&) const = default;
};

struct RankSimulation {
  std::vector<Span> spans;  // of the cells of its list
  double busy = 0;
  PeakStashes peak;
  int num_sends = 0;  // to other ranks
  bool operator==(const RankSimulation&) const = default;
};

struct Simulation {
  std::vector<RankSimulation> ranks;
  double makespan = 0;  // from the first start to the last end of all
  double span_max = 0;  // from the first start to the last end of the rank where that is longest
  double busy_max = 0;
  double bubble = 0;  // the part of all ranks' makespan in which they do nothing
  bool operator==(const Simulation&) const = default;
};

// A rank's list tells its peak without times; of a pair, F has started when the other ends.
PeakStashes peak_stashes(const std::vector<Cell>& cells);

// The lists on a clock. The schedule must be in range (see check.h); one that hangs is refused.
Result<Simulation> simulate(const Schedule& schedule, const Timing& timing);

}  // namespace ptrain::schedule
