#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

// Distance between `value` and the true result, in units of the float spacing there.
double ulps(float value, double truth) {
  const float near = static_cast<float>(truth);
  const float spacing = std::nextafter(near, std::numeric_limits<float>::infinity()) - near;
  return std::abs(static_cast<double>(value) - truth) / static_cast<double>(spacing);
}

TEST(Exponential, IsWithinTwoUlps) {
  double worst = 0;
  for (float x = -86.9f; x < 88.7f; x += 0.00037f)
    worst = std::max(worst, ulps(exponential(x), std::exp(static_cast<double>(x))));
  EXPECT_LT(worst, 2.0);
}

TEST(Exponential, IsNothingWhereFloatsEnd) {
  for (float x = -120.0f; x < -87.0f; x += 0.01f) EXPECT_LE(exponential(x), 2e-38f) << x;
  for (float x = -120.0f; x < -87.4f; x += 0.01f) EXPECT_EQ(exponential(x), 0.0f) << x;
}

TEST(Exponential, KeepsItsEnds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exponential(0.0f), 1.0f);
  EXPECT_EQ(exponential(-kInfinity), 0.0f);
  EXPECT_EQ(exponential(-1e30f), 0.0f);
  EXPECT_EQ(exponential(89.0f), kInfinity);
  EXPECT_EQ(exponential(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace ptrain::kernels
