#include <gtest/gtest.h>

#include "engine/kernels/rms_norm.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;
using test::Matrix;

constexpr double kEps = 1e-3;

Doubles plain_norm(const Doubles& x, const Doubles& weight, double offset = 0) {
  Doubles y(x.rows, x.cols);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    double squares = 0;
    for (std::int64_t c = 0; c < x.cols; ++c) squares += x(r, c) * x(r, c);
    const double root = std::sqrt(squares / static_cast<double>(x.cols) + kEps);
    for (std::int64_t c = 0; c < x.cols; ++c) y(r, c) = x(r, c) / root * (weight(0, c) + offset);
  }
  return y;
}

TEST(RmsNorm, IsTheFormula) {
  auto x = Doubles::random(3, 21, 1, 2), weight = Doubles::random(1, 21, 2);
  Doubles y(3, 21, 1), scale(3, 1);
  rms_norm(x.view(), {weight.view()}, kEps, y.view(), scale.view());
  EXPECT_LT(test::largest_difference(y, plain_norm(x, weight)), 1e-14);
  EXPECT_TRUE(y.gaps_untouched());

  auto x32 = Matrix<float>::random(3, 21, 1, 2), weight32 = Matrix<float>::random(1, 21, 2);
  Matrix<float> y32(3, 21), scale32(3, 1);
  rms_norm(x32.view(), {weight32.view()}, kEps, y32.view(), scale32.view());
  EXPECT_LT(test::largest_difference(y32, plain_norm(x, weight)), 2e-6);
}

TEST(RmsNorm, GradientsAreDifferences) {
  auto x = Doubles::random(3, 21, 1), weight = Doubles::random(1, 21, 2);
  const auto dy = Doubles::random(3, 21, 3), residual = Doubles::random(3, 21, 4);
  const auto f = [&] { return test::dot(plain_norm(x, weight), dy); };
  Doubles y(3, 21), scale(3, 1);
  rms_norm(x.view(), {weight.view()}, kEps, y.view(), scale.view());

  Doubles dx = dy;  // in place
  auto dweight = Doubles::filled(1, 21, 0);
  rms_norm_backward({x.view(), scale.view(), {weight.view()}, dx.view(), {}}, dx.view(),
                    dweight.view());
  EXPECT_LT(test::gradient_error(x, dx, f), 1e-8);
  EXPECT_LT(test::gradient_error(weight, dweight, f), 1e-8);

  Doubles dx_and_residual = residual, dy_view = dy;  // the residual's memory becomes dx
  rms_norm_backward(
      {x.view(), scale.view(), {weight.view()}, dy_view.view(), dx_and_residual.view()},
      dx_and_residual.view(), dweight.view());
  for (std::int64_t c = 0; c < 21; ++c) {
    EXPECT_NEAR(dx_and_residual(1, c), residual(1, c) + dx(1, c), 1e-14);
  }
  for (double& value : dweight.values) value /= 2;  // it was added to
  EXPECT_LT(test::gradient_error(weight, dweight, f), 1e-8);
}

TEST(RmsNorm, RoundsOnceToBFloat16) {
  auto x = Matrix<float>::random(3, 21, 1, 2);
  auto weight = Matrix<BFloat16>::random(1, 21, 2), y = Matrix<BFloat16>(3, 21, 1);
  Matrix<float> scale(3, 1), y32(3, 21);
  auto exact_x = Doubles::random(3, 21, 1, 2);
  for (std::size_t i = 0; i < x.values.size(); ++i) exact_x.values[i] = x.values[i];
  const Doubles wanted = plain_norm(exact_x, test::exactly(weight));
  rms_norm(x.view(), {weight.view()}, kEps, y.view(), scale.view());
  EXPECT_LT(test::beyond_rounding(y, wanted), 2e-6);
  EXPECT_TRUE(y.gaps_untouched());
  rms_norm(x.view(), {weight.view()}, kEps, y32.view(), scale.view());
  EXPECT_LT(test::largest_difference(y32, wanted), 2e-6);

  // Backward reads the weight alone in bfloat16: as with one that was float32 all the time.
  Matrix<float> weight32(1, 21), dweight(1, 21), dweight32(1, 21);
  for (std::int64_t c = 0; c < 21; ++c)
    weight32(0, c) = weight(0, c), dweight(0, c) = dweight32(0, c) = 0;
  auto dx = Matrix<float>::random(3, 21, 3), dx32 = dx;
  rms_norm_backward({x.view(), scale.view(), {weight.view()}, dx.view(), {}}, dx.view(),
                    dweight.view());
  rms_norm_backward({x.view(), scale.view(), {weight32.view()}, dx32.view(), {}}, dx32.view(),
                    dweight32.view());
  EXPECT_EQ(dx.values, dx32.values);
  EXPECT_EQ(dweight.values, dweight32.values);
}

// Gemma multiplies by 1 + weight.
TEST(RmsNorm, AnOffsetIsAddedToTheWeight) {
  auto x = Doubles::random(3, 21, 1), weight = Doubles::random(1, 21, 2);
  const auto dy = Doubles::random(3, 21, 3);
  Doubles y(3, 21), scale(3, 1);
  rms_norm(x.view(), {weight.view(), 1}, kEps, y.view(), scale.view());
  EXPECT_LT(test::largest_difference(y, plain_norm(x, weight, 1)), 1e-14);
  const auto f = [&] { return test::dot(plain_norm(x, weight, 1), dy); };
  Doubles dx = dy, dx_and_residual = Doubles::filled(3, 21, 0);
  auto dweight = Doubles::filled(1, 21, 0);
  rms_norm_backward({x.view(), scale.view(), {weight.view(), 1}, dx.view(), dx_and_residual.view()},
                    dx_and_residual.view(), dweight.view());
  EXPECT_LT(test::gradient_error(x, dx_and_residual, f), 1e-8);
  rms_norm_backward({x.view(), scale.view(), {weight.view(), 1}, dx.view(), {}}, dx.view(),
                    dweight.view());
  EXPECT_LT(test::gradient_error(x, dx, f), 1e-8);
}

}  // namespace
}  // namespace ptrain::kernels
