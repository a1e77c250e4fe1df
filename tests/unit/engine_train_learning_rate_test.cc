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

// By hand: from 0.8 at step 4 down to 0.2 at step 10, by 0.1 a step.
TEST(LearningRate, FallsInALine) {
  const auto linear = schedule(recipe::Decay::kLinear);
  EXPECT_DOUBLE_EQ(learning_rate(linear, 2, 10), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(linear, 4, 10), 0.8);
  EXPECT_NEAR(learning_rate(linear, 5, 10), 0.7, 1e-15);
  EXPECT_NEAR(learning_rate(linear, 8, 10), 0.4, 1e-15);
  EXPECT_NEAR(learning_rate(linear, 10, 10), 0.2, 1e-15);
}

// By hand: 0.8 up to step 7, then by 0.2 a step.
TEST(LearningRate, StaysThenFallsOverTheLastSteps) {
  auto wsd = schedule(recipe::Decay::kWsd);
  wsd.decay_steps = 3;
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 1, 10), 0.2);
  for (const int step : {4, 6, 7}) EXPECT_DOUBLE_EQ(learning_rate(wsd, step, 10), 0.8);
  EXPECT_NEAR(learning_rate(wsd, 8, 10), 0.6, 1e-15);
  EXPECT_NEAR(learning_rate(wsd, 9, 10), 0.4, 1e-15);
  EXPECT_NEAR(learning_rate(wsd, 10, 10), 0.2, 1e-15);
}

TEST(LearningRate, WithoutWarmUpTheFirstStepIsBelowThePeak) {
  auto cosine = schedule(recipe::Decay::kCosine);
  cosine.warmup_steps = 0;
  EXPECT_NEAR(learning_rate(cosine, 1, 2), 0.5, 1e-15);
}

}  // namespace
}  // namespace ptrain::train
