#include <gtest/gtest.h>

#include "launcher/supervise/stragglers.h"

namespace ptrain::supervise {
namespace {

// Four ranks that wait in so many of ten looks.
std::optional<std::string> news_of(Stragglers& stragglers, const std::vector<int>& tenths,
                                   const char* phase = "step",
                                   const std::vector<double>& round_trips_s = {0, 0, 0, 0}) {
  for (int look = 0; look < 60; ++look)
    for (int rank = 0; rank < 4; ++rank)
      stragglers.hear(
          rank, {1, phase, "world all_reduce#1", look % 10 < tenths[static_cast<std::size_t>(rank)],
                 0, 0, 0, 0, round_trips_s[static_cast<std::size_t>(rank)]});
  return stragglers.news();
}

TEST(Stragglers, TheRankThatNeverWaitsIsNamedOnce) {
  Stragglers stragglers({"a", "a", "b", "b"});
  EXPECT_EQ(
      news_of(stragglers, {6, 7, 0, 6}),
      "rank 2 on b holds the others up: it waits for others in 0 % of 60 looks, they in 60 %; "
      "computing is slow there: 0.0 ms a step, elsewhere 0.0 ms");
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

// A minute of ten steps a second; rank 2 takes longer for data or to compute, and never waits.
std::string news_of_a_minute(double data_s, double compute_s) {
  Stragglers stragglers({"a", "a", "b", "b"});
  for (int look = 0; look < 60; ++look)
    for (int rank = 0; rank < 4; ++rank) {
      const double steps_s = look, share = 0.1 * look;
      run::Heartbeat beat{10 * look, "step",  "x",         rank != 2,
                          0,         steps_s, 0.1 * share, 0.7 * steps_s};
      if (rank == 2) beat.data_s = data_s * 10 * look;
      if (rank == 2) beat.waited_s = steps_s - beat.data_s - compute_s * 10 * look;
      stragglers.hear(rank, beat);
    }
  return stragglers.news().value_or("");
}

TEST(Stragglers, WhatIsSlowIsNamed) {
  EXPECT_NE(
      news_of_a_minute(0.08, 0.02).find("data is slow there: 80.0 ms a step, elsewhere 1.0 ms"),
      std::string::npos);
  EXPECT_NE(news_of_a_minute(0.001, 0.099)
                .find("computing is slow there: 99.0 ms a step, elsewhere 29.0"),
            std::string::npos);
}

TEST(Stragglers, ANodeWithASlowNetworkIsNamedWhereAllWait) {
  Stragglers stragglers({"a", "a", "b", "c"});
  const std::vector<double> trips{2e-4, 3e-4, 0.05, 3e-4};
  const auto news = news_of(stragglers, {7, 6, 5, 7}, "step", trips);
  ASSERT_TRUE(news);
  EXPECT_EQ(*news,
            "the network of b is slow: it takes 50.0 ms to acknowledge what it is sent, others 0.3 "
            "ms, and ranks wait for each other in 70 % of the looks");
  EXPECT_FALSE(news_of(stragglers, {7, 6, 5, 7}, "step", trips));  // once
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
