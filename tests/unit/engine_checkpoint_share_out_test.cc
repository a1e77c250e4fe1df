#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/checkpoint/share_out.h"

namespace ptrain::checkpoint {
namespace {

TEST(ShareOut, DoesEachPieceOnce) {
  constexpr std::size_t kCount = 1000;
  for (const int threads : {1, 3, 8}) {
    std::vector<std::atomic<int>> done(kCount);
    share_out(kCount, threads, [&](std::size_t i) { ++done[i]; });
    for (const auto& times : done) EXPECT_EQ(times, 1) << threads;
  }
  share_out(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ShareOut, ThrowsWhatTheFirstOfThemThrewAndBeginsNoMore) {
  std::vector<int> begun;
  try {
    share_out(10, 1, [&](std::size_t i) {
      begun.push_back(static_cast<int>(i));
      if (i == 2) throw std::runtime_error("third");
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "third");
  }
  EXPECT_EQ(begun, (std::vector{0, 1, 2}));
  // All four are begun before one throws.
  std::atomic<int> waiting = 0;
  try {
    share_out(4, 4, [&](std::size_t i) {
      for (++waiting; waiting < 4;) std::this_thread::yield();
      throw std::runtime_error(std::to_string(i));
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "0");
  }
}

}  // namespace
}  // namespace ptrain::checkpoint
