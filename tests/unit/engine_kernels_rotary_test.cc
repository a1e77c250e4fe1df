#include <gtest/gtest.h>

#include "engine/kernels/rotary.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;

constexpr std::int64_t kHeadDim = 6;
const std::vector<std::int32_t> kPositions{0, 5, 1, 70};

TEST(Rotary, TurnsPairsByPositionTimesFrequency) {
  const RotaryTable table(kHeadDim, 500.0, DType::kFloat64);
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
  const RotaryTable table(kHeadDim, 10000.0, DType::kFloat64);
  const auto before = Doubles::random(4, 2 * kHeadDim, 1);
  Doubles x = before;
  rotate(*table.angles(71), kPositions, x.view(), Turn::kForward);
  EXPECT_GT(test::largest_difference(x, before), 0.1);
  rotate(*table.angles(71), kPositions, x.view(), Turn::kBack);
  EXPECT_LT(test::largest_difference(x, before), 1e-14);
}

TEST(Rotary, AGrownTableLeavesTheOldOneAlone) {
  const RotaryTable table(kHeadDim, 10000.0, DType::kFloat32);
  const auto small = table.angles(10), same = table.angles(3);
  EXPECT_EQ(small, same);
  const auto large = table.angles(1000);
  EXPECT_GE(large->tensor.rows, 1000);
  for (std::int64_t i = 0; i < small->tensor.num_elements(); ++i)
    EXPECT_EQ(small->tensor.as<float>()[i], large->tensor.as<float>()[i]);
}

TEST(Rotary, RefusesPositionsBeyondTheTable) {
  const RotaryTable table(kHeadDim, 10000.0, DType::kFloat64);
  Doubles x(1, kHeadDim);
  const std::vector<std::int32_t> position{4096};
  EXPECT_ANY_THROW(rotate(*table.angles(8), position, x.view(), Turn::kForward));
}

}  // namespace
}  // namespace ptrain::kernels
