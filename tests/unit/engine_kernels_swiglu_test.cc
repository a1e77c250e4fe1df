#include <gtest/gtest.h>

#include "engine/kernels/swiglu.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;
using test::Matrix;

Doubles plain_swiglu(const Doubles& gate_up) {
  const std::int64_t size = gate_up.cols / 2;
  Doubles product(gate_up.rows, size);
  for (std::int64_t r = 0; r < gate_up.rows; ++r)
    for (std::int64_t c = 0; c < size; ++c)
      product(r, c) = gate_up(r, c) / (1 + std::exp(-gate_up(r, c))) * gate_up(r, size + c);
  return product;
}

TEST(Swiglu, IsTheFormula) {
  auto gate_up = Doubles::random(3, 38, 1, 2);
  Doubles product(3, 19, 5);
  swiglu(gate_up.view(), product.view());
  EXPECT_LT(test::largest_difference(product, plain_swiglu(gate_up)), 1e-14);
  EXPECT_TRUE(product.gaps_untouched());

  auto gate_up32 = Matrix<float>::random(3, 38, 1, 2);
  Matrix<float> product32(3, 19);
  swiglu(gate_up32.view(), product32.view());
  EXPECT_LT(test::largest_difference(product32, plain_swiglu(gate_up)), 2e-6);
}

TEST(Swiglu, GradientIsTheDifference) {
  auto gate_up = Doubles::random(3, 38, 1), dproduct = Doubles::random(3, 19, 2);
  Doubles gradient = gate_up;
  swiglu_backward(gradient.view(), dproduct.view());
  const auto f = [&] { return test::dot(plain_swiglu(gate_up), dproduct); };
  EXPECT_LT(test::gradient_error(gate_up, gradient, f), 1e-8);
}

TEST(Swiglu, LargeGatesStayFinite) {
  Matrix<float> gate_up(1, 4), product(1, 2);
  gate_up.values = {-200.0f, 200.0f, 3.0f, 3.0f};
  swiglu(gate_up.view(), product.view());
  EXPECT_EQ(product(0, 0), 0.0f);
  EXPECT_EQ(product(0, 1), 600.0f);
}

}  // namespace
}  // namespace ptrain::kernels
