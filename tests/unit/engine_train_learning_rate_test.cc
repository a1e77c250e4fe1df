#include <gtest/gtest.h>

#include "engine/train/learning_rate.h"

namespace ptrain::train {
namespace {

recipe::LearningRate schedule(recipe::Decay decay) {
  recipe::LearningRate value;
  value.peak = 0.8;
  value.warmup_steps = 4;
  value.decay = decay;
  value.final_fraction = 0.25;
  return value;
}

// By hand: a quarter of the peak a step, then 0.2 + 0.6 (1 + cos(pi k / 6)) / 2.
TEST(LearningRate, WarmsUpThenFollowsTheCosine) {
  const auto cosine = schedule(recipe::Decay::kCosine);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 1, 10), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 3, 10), 0.6);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 4, 10), 0.8);
  EXPECT_NEAR(learning_rate(cosine, 6, 10), 0.65, 1e-15);
  EXPECT_NEAR(learning_rate(cosine, 7, 10), 0.5, 1e-15);
  EXPECT_NEAR(learning_rate(cosine, 10, 10), 0.2, 1e-15);
}

TEST(LearningRate, ConstantStaysAtThePeak) {
  const auto constant = schedule(recipe::Decay::kConstant);
  EXPECT_DOUBLE_EQ(learning_rate(constant, 2, 10), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(constant, 10, 10), 0.8);
}

TEST(LearningRate, WithoutWarmUpTheFirstStepIsBelowThePeak) {
  auto cosine = schedule(recipe::Decay::kCosine);
  cosine.warmup_steps = 0;
  EXPECT_NEAR(learning_rate(cosine, 1, 2), 0.5, 1e-15);
}

}  // namespace
}  // namespace ptrain::train
