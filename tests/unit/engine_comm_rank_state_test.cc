#include <gtest/gtest.h>

#include <atomic>
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

}  // namespace
}  // namespace ptrain::comm
