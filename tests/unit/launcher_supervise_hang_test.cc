#include <gtest/gtest.h>

#include "launcher/supervise/hang.h"

namespace ptrain::supervise {
namespace {

std::vector<LastHeard> ranks_in(const std::string& phase) {
  LastHeard training, other;
  training.phase = "step";
  other.phase = phase;
  return {training, other};
}

TEST(HangLimit, FollowsTheMedianStep) {
  const auto ranks = ranks_in("step");
  EXPECT_EQ(hang_limit(0, std::vector{1.0, 2.0, 600.0}, ranks), 30);  // never below
  EXPECT_EQ(hang_limit(0, std::vector{600.0, 4.0, 5.0}, ranks), 50);
}

TEST(HangLimit, IsFiveTimesAsLongWhereNoStepIsToBeExpected) {
  EXPECT_EQ(hang_limit(0, {}, ranks_in("step")), 150);  // before the first step
  EXPECT_EQ(hang_limit(0, std::vector{5.0}, ranks_in("validation")), 250);
  EXPECT_EQ(hang_limit(0, std::vector{5.0}, ranks_in("checkpoint")), 250);
}

TEST(HangLimit, TheRecipeMaySayIt) {
  EXPECT_EQ(hang_limit(7, std::vector{5.0}, ranks_in("step")), 7);
  EXPECT_EQ(hang_limit(7, std::vector{5.0}, ranks_in("validation")), 35);
}

// All heard of now, in the same step.
LastHeard in(const char* collective, bool waiting) {
  LastHeard rank;
  rank.step = 4;
  rank.phase = "step";
  rank.collective = collective;
  rank.waiting = waiting;
  return rank;
}

TEST(HangSuspect, IsTheOneThatDoesNotWait) {
  const std::vector ranks{in("world all_reduce#9", true), in("dp/0 all_reduce#40", false),
                          in("world all_reduce#9", true), in("dp/0 all_reduce#41", true)};
  EXPECT_EQ(suspect(ranks, 0), 1);
  EXPECT_EQ(describe_hang(ranks, 1, 30),
            "no progress for 30 s (step 4, step, last collective dp/0 all_reduce#40); "
            "rank 3 waits in dp/0 all_reduce#41; ranks 0, 2 wait in world all_reduce#9");
}

TEST(HangSuspect, OnlyNumbersOfTheSameCommunicatorAreCompared) {
  // The lowest number of all is rank 3's, on a communicator of which nobody else tells.
  const std::vector ranks{in("dp/0 all_reduce#41", true), in("dp/0 all_reduce#40", true),
                          in("dp/0 all_reduce#41", true), in("dp/1 all_reduce#7", true)};
  EXPECT_EQ(suspect(ranks, 0), 1);
  // Each waits for the other: none is behind.
  const std::vector crossed{in("dp/0 all_reduce#2", true), in("world all_reduce#9", true)};
  EXPECT_EQ(suspect(crossed, 0), -1);
  EXPECT_EQ(describe_hang(crossed, -1, 30),
            "no progress for 30 s; rank 0 waits in dp/0 all_reduce#2; "
            "rank 1 waits in world all_reduce#9");
}

TEST(HangSuspect, EpochsOfWindowsAndExchangesAreCountedApart) {
  const std::vector ranks{in("dp window epoch#2", true), in("dp exchange#1", true),
                          in("dp all_reduce#9", true)};
  EXPECT_EQ(suspect(ranks, 0), -1);
}

TEST(HangSuspect, ManyThatWaitAreCounted) {
  const std::vector<LastHeard> ranks(20, in("world barrier#3", true));
  EXPECT_EQ(describe_hang(ranks, -1, 30),
            "no progress for 30 s; ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more wait in "
            "world barrier#3");
}

}  // namespace
}  // namespace ptrain::supervise
