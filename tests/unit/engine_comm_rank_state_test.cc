#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "engine/comm/rank_state.h"

namespace ptrain::comm {
namespace {

// What a heartbeat of another thread sees: the collective begun last, and while the rank waits the
// one that it waits in, which may be an older one.
TEST(RankState, TheMarkTellsOfAWait) {
  RankState state;
  state.set_mark("dp", "all_reduce", 3);
  EXPECT_FALSE(state.mark().waiting);
  std::atomic<bool> finished = false;
  std::thread rank([&] {
    EXPECT_TRUE(state.wait(
        {"shard", "all_gather_v", 2}, [&] { return finished.load(); }, 60));
  });
  while (!state.mark().waiting) std::this_thread::yield();
  EXPECT_EQ(state.mark().communicator, "shard");
  EXPECT_EQ(state.mark().sequence, 2u);
  finished = true;
  rank.join();
  EXPECT_FALSE(state.mark().waiting);
  EXPECT_EQ(state.mark().communicator, "dp");
}

TEST(RankState, AWaitThatThrowsIsOver) {
  RankState state;
  int asked = 0;
  const auto fail_later = [&asked]() -> bool {
    if (++asked > 1) throw std::runtime_error("a peer failed");
    return false;
  };
  EXPECT_THROW(state.wait({"dp", "barrier", 1}, fail_later, 60), std::runtime_error);
  EXPECT_FALSE(state.mark().waiting);
}

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLong{50};

void sleep_long(int /*signal*/) { std::this_thread::sleep_for(kLong); }

// A wait of which a signal takes kLong away, as something else does that has the core.
double seconds_waited_when_interrupted() {
  RankState state;
  std::atomic<bool> finished = false;
  std::thread rank([&] {
    EXPECT_TRUE(state.wait(
        {"dp", "barrier", 1}, [&] { return finished.load(); }, 60));
  });
  while (!state.mark().waiting) std::this_thread::yield();
  ::pthread_kill(rank.native_handle(), SIGUSR1);
  std::this_thread::sleep_for(kLong / 10);
  finished = true;
  rank.join();
  return state.seconds_waited();
}

// Again and again, since the signal may come within a look, and here too something else may have
// the core.
TEST(RankState, TimeWithoutACoreIsNoWaiting) {
  struct sigaction action {};
  action.sa_handler = sleep_long;
  struct sigaction before {};
  ::sigaction(SIGUSR1, &action, &before);
  double least = 1;
  for (int i = 0; i < 20 && least > 0.02; ++i)
    least = std::min(least, seconds_waited_when_interrupted());
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_LT(least, 0.02);
}

TEST(RankState, WhatPeersTakeCountsAsWaiting) {
  RankState state;
  const auto begin = Clock::now();
  while (state.seconds_waited() < 0.02 && Clock::now() - begin < 100 * kLong) {
    const auto asked = Clock::now();
    EXPECT_TRUE(state.wait(
        {"dp", "barrier", 2}, [&] { return Clock::now() - asked > kLong; }, 60));
  }
  EXPECT_GE(state.seconds_waited(), 0.02);
  EXPECT_FALSE(state.wait(
      {"dp", "barrier", 3}, [] { return false; }, 0.01));
}

}  // namespace
}  // namespace ptrain::comm
