#include <gtest/gtest.h>

#include "launcher/supervise/policy.h"

namespace ptrain::supervise {
namespace {

Past failed(ExitCode code, int num_restarts, int max_restarts, std::int64_t before,
            std::int64_t now) {
  Past past;
  past.verdict.code = code;
  past.num_restarts = num_restarts;
  past.max_restarts = max_restarts;
  past.checkpoint_before = before;
  past.checkpoint_now = now;
  return past;
}

TEST(Policy, SuccessGoesOnToTheNextShape) {
  Past past;
  EXPECT_EQ(decide(past).action, AfterAttempt::kFinish);
  past.next_shape = "long";
  EXPECT_EQ(decide(past).action, AfterAttempt::kNextShape);
}

TEST(Policy, OnlySomeFailuresAreTriedAgain) {
  for (const auto code : {ExitCode::kRankError, ExitCode::kRankSignal, ExitCode::kOutOfMemory,
                          ExitCode::kHang, ExitCode::kNodeLost})
    EXPECT_EQ(decide(failed(code, 0, 1, -1, -1)).action, AfterAttempt::kRestart);
  for (const auto code :
       {ExitCode::kBug, ExitCode::kUsage, ExitCode::kEnvironment, ExitCode::kNothingFits,
        ExitCode::kUnusable, ExitCode::kNonFinite, ExitCode::kStopped, ExitCode::kPreempted}) {
    EXPECT_EQ(decide(failed(code, 0, 9, -1, 5)).action, AfterAttempt::kFinish);
    EXPECT_EQ(decide(failed(code, 0, 9, -1, 5)).code, code);
  }
}

TEST(Policy, TheBudgetHolds) {
  EXPECT_EQ(decide(failed(ExitCode::kHang, 0, 0, -1, 5)).action, AfterAttempt::kFinish);
  EXPECT_EQ(decide(failed(ExitCode::kHang, 1, 2, 5, 9)).action, AfterAttempt::kRestart);
  const Decision last = decide(failed(ExitCode::kHang, 2, 2, 5, 9));
  EXPECT_EQ(last.action, AfterAttempt::kFinish);
  EXPECT_EQ(last.code, ExitCode::kHang);
}

TEST(Policy, NoProgressEndsTheRun) {
  EXPECT_EQ(decide(failed(ExitCode::kHang, 0, 5, 7, 7)).action, AfterAttempt::kRestart);
  EXPECT_EQ(decide(failed(ExitCode::kHang, 1, 5, 7, 7)).code, ExitCode::kNoProgress);
}

TEST(Policy, StepsFindTheirShape) {
  run::Plan plan;
  plan.recipe.shapes.resize(2);
  plan.recipe.shapes[0].name = "short";
  plan.recipe.shapes[0].steps = 30;
  plan.recipe.shapes[1].name = "long";
  plan.recipe.shapes[1].steps = 10;
  EXPECT_EQ(next_shape_name(plan, -1), "short");
  EXPECT_EQ(next_shape_name(plan, 29), "short");
  EXPECT_EQ(next_shape_name(plan, 30), "long");
  EXPECT_EQ(next_shape_name(plan, 39), "long");
  EXPECT_EQ(next_shape_name(plan, 40), "");
}

}  // namespace
}  // namespace ptrain::supervise
