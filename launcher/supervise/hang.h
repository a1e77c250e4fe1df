#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ptrain::supervise {

// What the supervisor last heard of one rank. Times are in seconds on its own clock.
struct LastHeard {
  std::int64_t step = 0;
  std::string phase = "starting";
  std::string collective;  // "COMMUNICATOR VERB#SEQUENCE"
  bool waiting = false;    // for other ranks, in `collective`
  double heard_at = 0;     // any message
  std::int64_t resident_bytes = 0;
  bool ready = false;  // said hello
  bool gone = false;   // its connection is closed
  bool said_goodbye = false;
};

// Seconds without progress after which a run counts as hung: max(30, 10 x median step), or what the
// recipe says; 5 times that before the first step and while a rank validates or saves.
double hang_limit(double configured_s, std::span<const double> step_times,
                  std::span<const LastHeard> ranks);

// The rank that holds the others up: one that went silent, else the one with the lowest step, else
// the one that does not wait while others do, else the one that lags behind the others of its
// communicator. -1: none stands out.
int suspect(std::span<const LastHeard> ranks, double now);

// "no progress for 30 s (step 4, step, last collective dp all_reduce#8); ranks 0, 2 wait in
// dp all_reduce#9"; the part in brackets is of `suspect`, when there is one.
std::string describe_hang(std::span<const LastHeard> ranks, int suspect, double seconds);

}  // namespace ptrain::supervise
