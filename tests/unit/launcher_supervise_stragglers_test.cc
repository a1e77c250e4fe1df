#include <gtest/gtest.h>

#include "launcher/supervise/stragglers.h"

namespace ptrain::supervise {
namespace {

// A second of a rank, of ten steps.
struct Second {
  double waited_s, data_s = 0.01, round_trip_s = 0;
};

// Ranks that tell how they are every second.
class Crowd {
 public:
  explicit Crowd(Stragglers& listener, int steps_of_second = 10)
      : listener_(listener), steps_of_second_(steps_of_second) {}

  // What is said after so many heartbeats in which each rank is the same all the time.
  std::optional<std::string> news_of(const std::vector<Second>& ranks, int seconds = 21,
                                     const char* phase = "step") {
    beats_.resize(ranks.size());
    for (int second = 0; second < seconds; ++second)
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        run::Heartbeat& beat = beats_[rank];
        beat.phase = phase;
        beat.step += steps_of_second_;
        beat.steps_s += 1;
        beat.data_s += ranks[rank].data_s;
        beat.waited_s += ranks[rank].waited_s;
        beat.round_trip_s = ranks[rank].round_trip_s;
        listener_.hear(static_cast<int>(rank), beat);
      }
    return listener_.news();
  }

 private:
  Stragglers& listener_;
  int steps_of_second_;
  std::vector<run::Heartbeat> beats_;
};

TEST(Stragglers, TheRankThatOthersWaitForIsNamedOnce) {
  Stragglers stragglers({"a", "a", "b", "b"});
  Crowd crowd(stragglers);
  EXPECT_EQ(
      crowd.news_of({{.6}, {.7}, {.05}, {.6}}),
      "rank 2 on b holds the others up: it waits for others 5 % of the time, they 60 %; computing "
      "is slow there: 94.0 ms a step, elsewhere 39.0 ms");
  EXPECT_FALSE(crowd.news_of({{.6}, {.7}, {.05}, {.6}}));
  EXPECT_TRUE(crowd.news_of({{.6}, {.05}, {.7}, {.6}}));
}

TEST(Stragglers, RanksThatAreAlikeAreNoNews) {
  Stragglers stragglers({"a", "a", "b", "b"});
  Crowd crowd(stragglers);
  EXPECT_FALSE(crowd.news_of({{.1}, {.2}, {0}, {.2}}));   // little is exchanged
  EXPECT_FALSE(crowd.news_of({{.7}, {.6}, {.5}, {.7}}));  // the network, perhaps
  EXPECT_FALSE(crowd.news_of({{.6}, {.7}, {0}, {.6}}, 100, "validation"));
  Stragglers alone({"a"});
  EXPECT_FALSE(Crowd(alone).news_of({{0}}, 100));
}

TEST(Stragglers, WhatIsSlowIsNamed) {
  Stragglers stragglers({"a", "a", "b", "b"});
  const auto news = Crowd(stragglers).news_of({{.7}, {.7}, {0, .8}, {.7}});
  ASSERT_TRUE(news);
  EXPECT_NE(news->find("data is slow there: 80.0 ms a step, elsewhere 1.0 ms"), std::string::npos);
}

TEST(Stragglers, OfTwoTheOtherOneIsElsewhere) {
  Stragglers computes({"a", "b"});
  EXPECT_EQ(Crowd(computes).news_of({{.6}, {.1}}),
            "rank 1 on b holds the others up: it waits for others 10 % of the time, they 60 %; "
            "computing is slow there: 89.0 ms a step, elsewhere 39.0 ms");
  Stragglers reads({"a", "b"});
  const auto news = Crowd(reads).news_of({{.6}, {.1, .5}});
  ASSERT_TRUE(news);
  EXPECT_NE(news->find("data is slow there: 50.0 ms a step, elsewhere 1.0 ms"), std::string::npos);
  Stragglers travels({"a", "b"});
  EXPECT_EQ(Crowd(travels).news_of({{.6, 0, 3e-4}, {.6, 0, .05}}),
            "the network of b is slow: it takes 50.0 ms to acknowledge what it is sent, others 0.3 "
            "ms, and ranks wait for each other 60 % of the time");
}

TEST(Stragglers, ANodeWithASlowNetworkIsNamedWhereAllWait) {
  Stragglers stragglers({"a", "a", "b", "c"});
  Crowd crowd(stragglers);
  const std::vector<Second> seconds{{.7, 0, 2e-4}, {.6, 0, 3e-4}, {.5, 0, .05}, {.7, 0, 3e-4}};
  EXPECT_EQ(crowd.news_of(seconds),
            "the network of b is slow: it takes 50.0 ms to acknowledge what it is sent, others 0.3 "
            "ms, and ranks wait for each other 70 % of the time");
  EXPECT_FALSE(crowd.news_of(seconds));  // once
}

TEST(Stragglers, AFewSecondsOrStepsAreNotEnough) {
  Stragglers stragglers({"a", "b"});
  EXPECT_FALSE(Crowd(stragglers).news_of({{.7}, {0}}, 20));
  Stragglers slow({"a", "b"});
  EXPECT_FALSE(Crowd(slow, 0).news_of({{.7}, {0}}, 100));
}

// What validation or a checkpoint in between makes ranks wait does not count.
TEST(Stragglers, WaitsBetweenStepsDoNotCount) {
  Stragglers stragglers({"a", "b"});
  Crowd crowd(stragglers);
  for (int i = 0; i < 30; ++i) {
    EXPECT_FALSE(crowd.news_of({{.1}, {.1}}, 2));
    EXPECT_FALSE(crowd.news_of({{.9}, {0}}, 2, "validation"));
  }
}

}  // namespace
}  // namespace ptrain::supervise
