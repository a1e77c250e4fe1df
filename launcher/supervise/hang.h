#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ptrain::supervise {

// What the supervisor last heard of one rank. Times are in seconds on its own clock.
struct RankState {
  std::int64_t step = 0;
  std::string phase = "starting";
  std::string collective;  // "NAME#SEQUENCE"
  double heard_at = 0;     // any message
  std::int64_t resident_bytes = 0;
  bool ready = false;  // said hello
  bool gone = false;   // its connection is closed
  bool said_goodbye = false;
};

// Seconds without progress after which a run counts as hung: max(30, 10 x median step), or what the
// recipe says; 5 times that before the first step and while a rank validates or saves.
double hang_limit(double configured_s, std::span<const double> step_times,
                  std::span<const RankState> ranks);

// The rank that holds the others up: one that went silent, else the one with the lowest step, else
// the one outside a collective while others wait in one, else the one whose collective lags. -1:
// none stands out.
int suspect(std::span<const RankState> ranks, double now);

}  // namespace ptrain::supervise
