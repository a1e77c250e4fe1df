#include <gtest/gtest.h>

#include "launcher/supervise/hang.h"

namespace ptrain::supervise {
namespace {

std::vector<RankState> ranks_in(const std::string& phase) {
  RankState training, other;
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

}  // namespace
}  // namespace ptrain::supervise
