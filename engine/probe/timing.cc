#include "engine/probe/timing.h"

#include <ctime>

namespace ptrain::probe {

namespace {

double clock_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double thread_seconds() { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }
double wall_seconds() { return clock_seconds(CLOCK_MONOTONIC); }

double slowest(comm::Communicator& world, double seconds) {
  world
      .all_reduce(reinterpret_cast<std::byte*>(&seconds), DType::kFloat64, 1, comm::ReduceOp::kMax)
      ->wait();
  return seconds;
}

}  // namespace ptrain::probe
