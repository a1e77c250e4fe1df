#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/program/action.h"

namespace ptrain::plan {

inline constexpr int kNumLanes = 6;

struct Interval {
  double start_s = 0;
  double end_s = 0;
  bool operator==(const Interval&) const = default;
};

struct RankTimeline {
  std::vector<Interval> actions;              // by id
  std::array<double, kNumLanes> busy_s{};     // by lane
  std::array<double, kNumLanes> exposed_s{};  // by lane: what compute waits for
};

struct Timeline {
  double step_s = 0;
  std::vector<RankTimeline> ranks;  // one a program
  double bubble = 0;                // share in which compute idles, mean over ranks
};

struct SimulateOptions {
  // Seconds of an action on the program of this index.
  std::function<double(const program::Action&, int)> seconds;
  // The programs (indices, ascending, its own among them) that an action needs at the same time:
  // they start it together. Empty function or result: the action waits for nobody, as when one
  // program stands for its class.
  std::function<std::vector<int>(const program::Action&, int)> members;
  // One queue a rank instead of one a lane: communication takes the core that computes. Copies of
  // offloaded state go on beside it, since the disk does them; both directions are one queue.
  bool serial = false;
};

// Runs programs on a clock: every lane in order, every action after those it names, collectives
// with all their members. Members are matched by kind, group, micro-batch and attributes, in order
// of occurrence. A SEND takes its seconds from its rank's lane; the RECV of it, which keeps no
// lane, ends then, or when it is posted later. Their `to` and `from` are indices of programs.
// Errors (kBug): a program that cannot end.
Result<Timeline> simulate(std::span<const program::Program> programs,
                          const SimulateOptions& options);

}  // namespace ptrain::plan
