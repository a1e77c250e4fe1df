#include <gtest/gtest.h>

#include "engine/base/device.h"
#include "engine/kernels/rows.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;
using test::Matrix;

TEST(Rows, ABiasAndItsGradient) {
  auto y = Doubles::random(4, 19, 1, 3), row = Doubles::random(1, 19, 2);
  const Doubles before = y;
  add_row(row.view(), y.view());
  for (std::int64_t r = 0; r < 4; ++r)
    for (std::int64_t c = 0; c < 19; ++c) EXPECT_EQ(y(r, c), before(r, c) + row(0, c));
  EXPECT_TRUE(y.gaps_untouched());
  auto sum = Doubles::filled(1, 19, 0.5);
  sum_rows(y.view(), sum.view());
  for (std::int64_t c = 0; c < 19; ++c)
    EXPECT_EQ(sum(0, c), 0.5 + y(0, c) + y(1, c) + y(2, c) + y(3, c));
}

TEST(Rows, SumAndScale) {
  auto x = Doubles::random(4, 19, 1, 3), y = Doubles::random(4, 19, 2, 1);
  const Doubles before = y;
  add(x.view(), y.view());
  scale(3.0, y.view());
  for (std::int64_t c = 0; c < 19; ++c) EXPECT_EQ(y(2, c), 3.0 * (before(2, c) + x(2, c)));
  EXPECT_TRUE(y.gaps_untouched());
}

TEST(Rows, ManyAreAddedUp) {
  auto y = Doubles::random(200, 300, 1, 5), sum = Doubles::filled(1, 300, 0.5);
  sum_rows(y.view(), sum.view());
  for (std::int64_t c = 0; c < 300; ++c) {
    double wanted = 0.5;
    for (std::int64_t r = 0; r < 200; ++r) wanted += y(r, c);
    EXPECT_NEAR(sum(0, c), wanted, 1e-13);
  }
}

TEST(Rows, AreCombined) {
  auto x = Doubles::random(4, 19, 1, 3), y = Doubles::random(4, 19, 2, 1);
  const Doubles before = y;
  combine(2.0, y.view(), -0.5, x.view());
  for (std::int64_t r = 0; r < 4; ++r)
    for (std::int64_t c = 0; c < 19; ++c)
      EXPECT_NEAR(y(r, c), 2.0 * before(r, c) - 0.5 * x(r, c), 1e-15);
  EXPECT_TRUE(y.gaps_untouched());
}

TEST(Rows, BecomeZero) {
  auto y = Matrix<BFloat16>::random(4, 19, 1, 3);
  set_zero(y.view());
  device::synchronize();
  for (std::int64_t r = 0; r < 4; ++r)
    for (std::int64_t c = 0; c < 19; ++c) EXPECT_EQ(y(r, c).bits, 0);
  EXPECT_TRUE(y.gaps_untouched());
}

// n, n - 1, ..., 1: n (n + 1) (2 n + 1) / 6.
TEST(Rows, HaveASumOfSquares) {
  for (const std::int64_t n : {1, 300, 70000}) {
    Matrix<float> row(1, n);
    for (std::int64_t c = 0; c < n; ++c) row(0, c) = static_cast<float>(n - c);
    const auto size = static_cast<double>(n);
    EXPECT_NEAR(square_sum(row.view()) / (size * (size + 1) * (2 * size + 1) / 6), 1, 1e-12);
  }
}

TEST(Rows, BFloat16IsAddedToFloat32) {
  auto row = Matrix<BFloat16>::random(1, 19, 1), x = Matrix<BFloat16>::random(4, 19, 2, 3);
  auto y = Matrix<float>::random(4, 19, 3, 1), sum = Matrix<float>::filled(1, 19, 0.5f);
  const auto before = y;
  add_row(row.view(), y.view());
  for (std::int64_t c = 0; c < 19; ++c) EXPECT_EQ(y(3, c), before(3, c) + row(0, c));
  const auto between = y;
  add(x.view(), y.view());
  for (std::int64_t c = 0; c < 19; ++c) EXPECT_EQ(y(1, c), between(1, c) + x(1, c));
  EXPECT_TRUE(y.gaps_untouched());
  sum_rows(x.view(), sum.view());
  for (std::int64_t c = 0; c < 19; ++c)
    EXPECT_EQ(sum(0, c), 0.5f + x(0, c) + x(1, c) + x(2, c) + x(3, c));
}

TEST(Rows, SoftcapIsATanh) {
  auto x = Doubles::random(4, 19, 1, 3);
  for (double& value : x.values) value *= 5;
  Doubles y = x;
  softcap(3.0, y.view());
  for (std::int64_t c = 0; c < 19; ++c) EXPECT_NEAR(y(1, c), 3 * std::tanh(x(1, c) / 3), 1e-14);
  auto dy = Doubles::random(4, 19, 2);
  Doubles gradient = dy;
  softcap_backward(3.0, y.view(), gradient.view());
  const auto f = [&] {
    double sum = 0;
    for (std::int64_t r = 0; r < 4; ++r)
      for (std::int64_t c = 0; c < 19; ++c) sum += 3 * std::tanh(x(r, c) / 3) * dy(r, c);
    return sum;
  };
  EXPECT_LT(test::gradient_error(x, gradient, f), 1e-8);
}

TEST(Rows, SoftcapOfLargeFloats) {
  Matrix<float> y(1, 3);
  y.values = {-1e30f, 1e30f, 0.0f};
  softcap(30.0, y.view());
  EXPECT_EQ(y.values, (std::vector<float>{-30.0f, 30.0f, 0.0f}));
}

}  // namespace
}  // namespace ptrain::kernels
