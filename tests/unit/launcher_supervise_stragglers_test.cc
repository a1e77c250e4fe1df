#include <gtest/gtest.h>

#include "launcher/supervise/stragglers.h"

namespace ptrain::supervise {
namespace {

// Four ranks that wait in so many of ten looks.
std::optional<std::string> news_of(Stragglers& stragglers, const std::vector<int>& tenths,
                                   const char* phase = "step") {
  for (int look = 0; look < 60; ++look)
    for (int rank = 0; rank < 4; ++rank)
      stragglers.hear(rank, {1, phase, "world all_reduce#1",
                             look % 10 < tenths[static_cast<std::size_t>(rank)], 0});
  return stragglers.news();
}

TEST(Stragglers, TheRankThatNeverWaitsIsNamedOnce) {
  Stragglers stragglers({"a", "a", "b", "b"});
  EXPECT_EQ(
      news_of(stragglers, {6, 7, 0, 6}),
      "rank 2 on b holds the others up: it waits for others in 0 % of 60 looks, they in 60 %; "
      "it computes or reads data more slowly");
  EXPECT_FALSE(news_of(stragglers, {6, 7, 0, 6}));
  EXPECT_TRUE(news_of(stragglers, {6, 0, 7, 6}));
}

TEST(Stragglers, RanksThatAreAlikeAreNoNews) {
  Stragglers stragglers({"a", "a", "b", "b"});
  EXPECT_FALSE(news_of(stragglers, {1, 1, 0, 2}));  // little is exchanged
  EXPECT_FALSE(news_of(stragglers, {7, 6, 5, 7}));  // the network, perhaps
  EXPECT_FALSE(news_of(stragglers, {6, 7, 0, 6}, "validation"));
  Stragglers alone({"a"});
  for (int look = 0; look < 100; ++look) alone.hear(0, {1, "step", "", false, 0});
  EXPECT_FALSE(alone.news());
}

TEST(Stragglers, AFewLooksAreNotEnough) {
  Stragglers stragglers({"a", "b"});
  for (int look = 0; look < 59; ++look) {
    stragglers.hear(0, {1, "step", "x", true, 0});
    stragglers.hear(1, {1, "step", "x", false, 0});
  }
  EXPECT_FALSE(stragglers.news());
}

}  // namespace
}  // namespace ptrain::supervise
