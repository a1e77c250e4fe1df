#include <gtest/gtest.h>

#include <numbers>

#include "engine/kernels/activation.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;
using test::Matrix;

// As torch.nn.functional documents silu and gelu (approximate: none, tanh).
double plain(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3))));
  }
  return 0;
}

Doubles plain_gated(Activation activation, const Doubles& gate_up) {
  const std::int64_t size = gate_up.cols / 2;
  Doubles product(gate_up.rows, size);
  for (std::int64_t r = 0; r < gate_up.rows; ++r)
    for (std::int64_t c = 0; c < size; ++c)
      product(r, c) = plain(activation, gate_up(r, c)) * gate_up(r, size + c);
  return product;
}

Doubles plain_activate(Activation activation, const Doubles& x) {
  Doubles product(x.rows, x.cols);
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t c = 0; c < x.cols; ++c) product(r, c) = plain(activation, x(r, c));
  return product;
}

class Activations : public testing::TestWithParam<Activation> {};

TEST_P(Activations, AreTheFormulas) {
  auto gate_up = Doubles::random(3, 38, 1, 2);
  Doubles product(3, 19, 5), whole(3, 38, 1);
  gated(GetParam(), gate_up.view(), product.view());
  EXPECT_LT(test::largest_difference(product, plain_gated(GetParam(), gate_up)), 1e-14);
  EXPECT_TRUE(product.gaps_untouched());
  activate(GetParam(), gate_up.view(), whole.view());
  EXPECT_LT(test::largest_difference(whole, plain_activate(GetParam(), gate_up)), 1e-14);
  EXPECT_TRUE(whole.gaps_untouched());

  auto gate_up32 = Matrix<float>::random(3, 38, 1, 2);
  Matrix<float> product32(3, 19), whole32(3, 38);
  gated(GetParam(), gate_up32.view(), product32.view());
  EXPECT_LT(test::largest_difference(product32, plain_gated(GetParam(), gate_up)), 2e-6);
  activate(GetParam(), gate_up32.view(), whole32.view());
  EXPECT_LT(test::largest_difference(whole32, plain_activate(GetParam(), gate_up)), 2e-6);
}

TEST_P(Activations, RoundOnceToBFloat16) {
  auto gate_up = Matrix<BFloat16>::random(3, 38, 1, 2);
  Matrix<BFloat16> product(3, 19, 5), whole(3, 38, 1);
  const Doubles inputs = test::exactly(gate_up);
  gated(GetParam(), gate_up.view(), product.view());
  EXPECT_LT(test::beyond_rounding(product, plain_gated(GetParam(), inputs)), 2e-6);
  EXPECT_TRUE(product.gaps_untouched());
  activate(GetParam(), gate_up.view(), whole.view());
  EXPECT_LT(test::beyond_rounding(whole, plain_activate(GetParam(), inputs)), 2e-6);
  EXPECT_TRUE(whole.gaps_untouched());
}

// The gradients in float32 of the same inputs, rounded.
TEST_P(Activations, GradientsRoundOnceToBFloat16) {
  auto gate_up = Matrix<BFloat16>::random(3, 38, 1, 2);
  Doubles exact = test::exactly(gate_up), exact_whole = exact;
  auto whole = gate_up;
  auto dproduct = Matrix<float>::random(3, 38, 2);
  Doubles exact_dproduct(3, 38);
  for (std::size_t i = 0; i < dproduct.values.size(); ++i)
    exact_dproduct.values[i] = static_cast<double>(dproduct.values[i]);
  gated_backward(GetParam(), gate_up.view(), dproduct.view().columns(0, 19));
  gated_backward(GetParam(), exact.view(), exact_dproduct.view().columns(0, 19));
  EXPECT_LT(test::beyond_rounding(gate_up, exact), 2e-6);
  EXPECT_TRUE(gate_up.gaps_untouched());
  activate_backward(GetParam(), whole.view(), dproduct.view());
  activate_backward(GetParam(), exact_whole.view(), exact_dproduct.view());
  EXPECT_LT(test::beyond_rounding(whole, exact_whole), 2e-6);
}

TEST_P(Activations, GradientsAreDifferences) {
  auto gate_up = Doubles::random(3, 38, 1), dproduct = Doubles::random(3, 19, 2);
  Doubles gradient = gate_up;
  gated_backward(GetParam(), gradient.view(), dproduct.view());
  const auto f = [&] { return test::dot(plain_gated(GetParam(), gate_up), dproduct); };
  EXPECT_LT(test::gradient_error(gate_up, gradient, f), 1e-8);

  auto x = Doubles::random(3, 19, 4);
  gradient = x;
  activate_backward(GetParam(), gradient.view(), dproduct.view());
  const auto g = [&] { return test::dot(plain_activate(GetParam(), x), dproduct); };
  EXPECT_LT(test::gradient_error(x, gradient, g), 1e-8);
}

TEST_P(Activations, LargeGatesStayFinite) {
  Matrix<float> gate_up(1, 4), product(1, 2);
  gate_up.values = {-200.0f, 200.0f, 3.0f, 3.0f};
  gated(GetParam(), gate_up.view(), product.view());
  EXPECT_EQ(product(0, 0), 0.0f);
  EXPECT_EQ(product(0, 1), 600.0f);
  product.values = {1.0f, 1.0f};
  gated_backward(GetParam(), gate_up.view(), product.view());
  EXPECT_EQ(gate_up(0, 0), 0.0f);
  EXPECT_EQ(gate_up(0, 1), 3.0f);
}

INSTANTIATE_TEST_SUITE_P(All, Activations,
                         testing::Values(Activation::kSilu, Activation::kGelu,
                                         Activation::kGeluTanh));

}  // namespace
}  // namespace ptrain::kernels
