#include <gtest/gtest.h>

#include "engine/kernels/rotary.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;

constexpr std::int64_t kHeadDim = 6;
const std::vector<std::int32_t> kPositions{0, 5, 1, 70};

std::vector<double> frequencies(double theta) {
  return {1.0, std::pow(theta, -2.0 / kHeadDim), std::pow(theta, -4.0 / kHeadDim)};
}

TEST(Rotary, TurnsPairsByPositionTimesFrequency) {
  const RotaryTable table(frequencies(500.0), 1, DType::kFloat64);
  const auto before = Doubles::random(4, 2 * kHeadDim, 1, 3);
  Doubles x = before;
  rotate(*table.angles(71), kPositions, x.view(), Turn::kForward);
  for (std::int64_t t = 0; t < 4; ++t)
    for (std::int64_t head = 0; head < 2; ++head)
      for (std::int64_t j = 0; j < 3; ++j) {
        const double angle = kPositions[static_cast<std::size_t>(t)] /
                             std::pow(500.0, 2.0 * static_cast<double>(j) / kHeadDim);
        const double a = before(t, head * 6 + j), b = before(t, head * 6 + 3 + j);
        EXPECT_NEAR(x(t, head * 6 + j), a * std::cos(angle) - b * std::sin(angle), 1e-13);
        EXPECT_NEAR(x(t, head * 6 + 3 + j), b * std::cos(angle) + a * std::sin(angle), 1e-13);
      }
  EXPECT_TRUE(x.gaps_untouched());
}

TEST(Rotary, BackUndoesForward) {
  const RotaryTable table(frequencies(10000.0), 1, DType::kFloat64);
  const auto before = Doubles::random(4, 2 * kHeadDim, 1);
  Doubles x = before;
  rotate(*table.angles(71), kPositions, x.view(), Turn::kForward);
  EXPECT_GT(test::largest_difference(x, before), 0.1);
  rotate(*table.angles(71), kPositions, x.view(), Turn::kBack);
  EXPECT_LT(test::largest_difference(x, before), 1e-14);
}

// yarn: of cosines and sines, forward and in the gradient.
TEST(Rotary, TheFactorMultipliesBothWays) {
  const RotaryTable plain(frequencies(500.0), 1, DType::kFloat64);
  const RotaryTable larger(frequencies(500.0), 1.25, DType::kFloat64);
  for (const Turn turn : {Turn::kForward, Turn::kBack}) {
    auto x = Doubles::random(4, kHeadDim, 1), y = x;
    rotate(*plain.angles(71), kPositions, x.view(), turn);
    rotate(*larger.angles(71), kPositions, y.view(), turn);
    for (double& value : x.values) value *= 1.25;
    EXPECT_LT(test::largest_difference(y, x), 1e-14);
  }
}

TEST(Rotary, AGrownTableLeavesTheOldOneAlone) {
  const RotaryTable table(frequencies(10000.0), 1, DType::kFloat32);
  const auto small = table.angles(10), same = table.angles(3);
  EXPECT_EQ(small, same);
  const auto large = table.angles(1000);
  EXPECT_GE(large->tensor.rows, 1000);
  for (std::int64_t i = 0; i < small->tensor.num_elements(); ++i)
    EXPECT_EQ(small->tensor.as<float>()[i], large->tensor.as<float>()[i]);
}

TEST(Rotary, RefusesPositionsBeyondTheTable) {
  const RotaryTable table(frequencies(10000.0), 1, DType::kFloat64);
  Doubles x(1, kHeadDim);
  const std::vector<std::int32_t> position{4096};
  EXPECT_ANY_THROW(rotate(*table.angles(8), position, x.view(), Turn::kForward));
}

}  // namespace
}  // namespace ptrain::kernels
