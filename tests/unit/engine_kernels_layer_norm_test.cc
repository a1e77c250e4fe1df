#include <gtest/gtest.h>

#include "engine/kernels/layer_norm.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;
using test::Matrix;

constexpr double kEps = 1e-3;

Doubles plain_norm(const Doubles& x, const Doubles& weight, const Doubles& bias) {
  Doubles y(x.rows, x.cols);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    double mean = 0, variance = 0;
    for (std::int64_t c = 0; c < x.cols; ++c) mean += x(r, c) / static_cast<double>(x.cols);
    for (std::int64_t c = 0; c < x.cols; ++c)
      variance += std::pow(x(r, c) - mean, 2) / static_cast<double>(x.cols);
    for (std::int64_t c = 0; c < x.cols; ++c)
      y(r, c) = (x(r, c) - mean) / std::sqrt(variance + kEps) * weight(0, c) + bias(0, c);
  }
  return y;
}

TEST(LayerNorm, IsTheFormula) {
  auto x = Doubles::random(3, 21, 1, 2), weight = Doubles::random(1, 21, 2);
  auto bias = Doubles::random(1, 21, 3);
  Doubles y(3, 21, 1), statistics(3, 2, 1);
  layer_norm(x.view(), {weight.view(), bias.view()}, kEps, y.view(), statistics.view());
  EXPECT_LT(test::largest_difference(y, plain_norm(x, weight, bias)), 1e-14);
  EXPECT_TRUE(y.gaps_untouched());
  EXPECT_TRUE(statistics.gaps_untouched());

  auto x32 = Matrix<float>::random(3, 21, 1, 2), weight32 = Matrix<float>::random(1, 21, 2);
  auto bias32 = Matrix<float>::random(1, 21, 3);
  Matrix<float> y32(3, 21), statistics32(3, 2);
  layer_norm(x32.view(), {weight32.view(), bias32.view()}, kEps, y32.view(), statistics32.view());
  EXPECT_LT(test::largest_difference(y32, plain_norm(x, weight, bias)), 2e-6);
}

TEST(LayerNorm, RoundsOnceToBFloat16) {
  auto x = Matrix<float>::random(3, 21, 1, 2);
  auto weight = Matrix<BFloat16>::random(1, 21, 2), bias = Matrix<BFloat16>::random(1, 21, 3);
  Matrix<BFloat16> y(3, 21, 1);
  Matrix<float> statistics(3, 2);
  Doubles exact_x(3, 21);
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t c = 0; c < 21; ++c) exact_x(r, c) = static_cast<double>(x(r, c));
  layer_norm(x.view(), {weight.view(), bias.view()}, kEps, y.view(), statistics.view());
  const Doubles wanted = plain_norm(exact_x, test::exactly(weight), test::exactly(bias));
  EXPECT_LT(test::beyond_rounding(y, wanted), 2e-6);
  EXPECT_TRUE(y.gaps_untouched());
}

TEST(LayerNorm, GradientsAreDifferences) {
  auto x = Doubles::random(3, 21, 1), weight = Doubles::random(1, 21, 2);
  auto bias = Doubles::random(1, 21, 5);
  const auto dy = Doubles::random(3, 21, 3), residual = Doubles::random(3, 21, 4);
  const auto f = [&] { return test::dot(plain_norm(x, weight, bias), dy); };
  Doubles y(3, 21), statistics(3, 2);
  layer_norm(x.view(), {weight.view(), bias.view()}, kEps, y.view(), statistics.view());

  Doubles dx = dy;  // in place
  auto dweight = Doubles::filled(1, 21, 0), dbias = Doubles::filled(1, 21, 0);
  layer_norm_backward({x.view(), statistics.view(), weight.view(), dx.view(), {}}, dx.view(),
                      {dweight.view(), dbias.view()});
  EXPECT_LT(test::gradient_error(x, dx, f), 1e-8);
  EXPECT_LT(test::gradient_error(weight, dweight, f), 1e-8);
  EXPECT_LT(test::gradient_error(bias, dbias, f), 1e-8);

  Doubles both = residual, dy_view = dy;  // the residual's memory becomes dx
  layer_norm_backward({x.view(), statistics.view(), weight.view(), dy_view.view(), both.view()},
                      both.view(), {dweight.view(), dbias.view()});
  for (std::int64_t c = 0; c < 21; ++c) EXPECT_NEAR(both(1, c), residual(1, c) + dx(1, c), 1e-14);
  for (double& value : dbias.values) value /= 2;  // it was added to
  EXPECT_LT(test::gradient_error(bias, dbias, f), 1e-8);
}

}  // namespace
}  // namespace ptrain::kernels
