#pragma once

#include <algorithm>
#include <limits>

#include "engine/comm/communicator.h"

namespace ptrain::probe {

// CPU seconds of this thread so far. What computes is timed by them: a moment in which the machine
// had other work lengthens the wall clock only.
double thread_seconds();
double wall_seconds();

// The worst value of all ranks: a collective step waits for the slowest. Collective.
double slowest(comm::Communicator& world, double seconds);

// Least CPU seconds of work() on any of several rounds, on the slowest rank, while the others do
// the same. Collective.
template <class Work>
double best_seconds(comm::Communicator& world, Work work) {
  constexpr double kSecondsEach = 0.015;
  constexpr int kLeastRounds = 5;
  work();
  world.barrier();
  double best = std::numeric_limits<double>::max();
  const double start = thread_seconds();
  for (int round = 0; round < kLeastRounds || thread_seconds() - start < kSecondsEach; ++round) {
    const double begin = thread_seconds();
    work();
    best = std::min(best, thread_seconds() - begin);
  }
  return slowest(world, best);
}

// The same by the wall clock for what waits for other ranks: means of `num_rounds`, as many on
// every rank, and the best mean.
template <class Work>
double best_collective_seconds(comm::Communicator& world, int num_rounds, Work work) {
  constexpr int kRepeats = 6;
  work();
  double best = std::numeric_limits<double>::max();
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    world.barrier();
    const double start = wall_seconds();
    for (int round = 0; round < num_rounds; ++round) work();
    best = std::min(best, slowest(world, (wall_seconds() - start) / num_rounds));
  }
  return best;
}

}  // namespace ptrain::probe
