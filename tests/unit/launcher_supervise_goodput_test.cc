#include <gtest/gtest.h>

#include "launcher/supervise/goodput.h"

namespace ptrain::supervise {
namespace {

TEST(Goodput, StepsMadeAgainCountOnce) {
  Goodput goodput;
  EXPECT_EQ(goodput.trained_s(9), 0);
  for (int step = 11; step <= 15; ++step) goodput.step(step, 1);
  EXPECT_EQ(goodput.trained_s(13), 3);
  EXPECT_EQ(goodput.trained_s(10), 0);
  goodput.step(14, 2);  // after a restart from step 13
  EXPECT_EQ(goodput.trained_s(20), 5);
}

}  // namespace
}  // namespace ptrain::supervise
