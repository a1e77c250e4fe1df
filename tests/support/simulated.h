#pragma once

#include <utility>
#include <vector>

#include "launcher/plan/simulate.h"

namespace ptrain::support {

// An action by hand, for programs that are only simulated.
inline program::Action action(int id, program::Lane lane, program::Kind kind,
                              std::vector<int> after = {}) {
  program::Action out;
  out.id = id;
  out.lane = lane;
  out.kind = kind;
  out.after = std::move(after);
  return out;
}

inline double exposed(const plan::RankTimeline& rank, program::Lane lane) {
  return rank.exposed_s[static_cast<std::size_t>(lane)];
}

}  // namespace ptrain::support
