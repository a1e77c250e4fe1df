#pragma once

#include <vector>

#include "core/schedule/positions.h"
#include "core/schedule/schedule.h"

namespace ptrain::schedule {

struct StageCost {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  bool operator==(const StageCost&) const = default;
};

// What everything costs, stage by stage, in one unit of time.
struct Timing {
  std::vector<StageCost> stages;
  double communication = 0;
  double overlapped = 0;  // of a pair; 0: the sum of its halves
};

Timing uniform_timing(const Schedule& schedule, const Costs& costs);

struct Span {
  double start = 0;
  double end = 0;
  bool operator==(const Span&) const = default;
};

// What became of the lists. A rank that has ended has its length as `next`; ranks that wait for
// each other for ever stand at a cell.
struct Execution {
  std::vector<std::vector<Span>> spans;
  std::vector<std::size_t> next;
};

// Each rank runs its list in order, a cell as soon as the rank is free and its needs have arrived;
// sending takes nobody's time. O(cells).
Execution execute(const Schedule& schedule, const Positions& positions, const Timing& timing);

}  // namespace ptrain::schedule
