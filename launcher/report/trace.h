#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/directory.h"

namespace ptrain::report {

// An action on the clock of its step.
struct Span {
  int lane = 0;  // of program::Lane
  std::string kind;
  std::string action;  // its text
  double start_s = 0;
  double end_s = 0;
};

struct RankSpans {
  int rank = 0;
  std::vector<Span> spans;
};

// One step of the ranks as trace/ has it. Clocks of ranks on other nodes are taken as they are.
struct TracedStep {
  int attempt = 0;  // 0: nothing was traced
  std::int64_t step = 0;
  std::vector<RankSpans> ranks;
  int unreadable = 0;  // files of the attempt that are no trace
};

// The last step that rank 0 traced in the newest attempt that has a trace; of the first
// `most_ranks`.
TracedStep read_trace(const run::Directory& directory, int last_attempt, int most_ranks);

}  // namespace ptrain::report
