#include <gtest/gtest.h>

#include "engine/base/bfloat16.h"
#include "engine/kernels/matmul.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Matrix;

// c + a b with plain loops, in double.
template <class In, class Out>
test::Doubles product(const Matrix<In>& a, const Matrix<In>& b, const Matrix<Out>& c,
                      MatmulOptions options) {
  test::Doubles result(c.rows, c.cols);
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.cols; ++j) {
      double sum = options.accumulate ? static_cast<double>(c(i, j)) : 0.0;
      for (std::int64_t k = 0; k < (options.transpose_a ? a.rows : a.cols); ++k)
        sum += static_cast<double>(options.transpose_a ? a(k, i) : a(i, k)) *
               static_cast<double>(options.transpose_b ? b(j, k) : b(k, j));
      result(i, j) = sum;
    }
  return result;
}

template <class In, class Out>
void expect_products(double bound) {
  const std::int64_t m = 7, n = 5, k = 9;
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const bool accumulate : {false, true}) {
        const MatmulOptions options{transpose_a, transpose_b, accumulate};
        auto a = Matrix<In>::random(transpose_a ? k : m, transpose_a ? m : k, 1, 3);
        auto b = Matrix<In>::random(transpose_b ? n : k, transpose_b ? k : n, 2, 2);
        auto c = Matrix<Out>::random(m, n, 3, 4);
        const test::Doubles wanted = product(a, b, c, options);
        matmul(a.view(), b.view(), c.view(), options);
        EXPECT_LT(test::largest_difference(c, wanted), bound)
            << transpose_a << transpose_b << accumulate;
        EXPECT_TRUE(c.gaps_untouched());
      }
}

TEST(Matmul, StridedRowsInEveryOrientation) {
  expect_products<double, double>(1e-13);
  expect_products<float, float>(1e-5);
}

// The products of bfloat16 values are exact in float32: only the sum rounds.
TEST(Matmul, MultipliesBFloat16IntoFloat32) { expect_products<BFloat16, float>(1e-5); }

TEST(Matmul, RefusesDtypesThatDoNotFit) {
  Matrix<float> a(2, 2), c(2, 2);
  Matrix<BFloat16> b(2, 2);
  EXPECT_ANY_THROW(matmul(a.view(), b.view(), c.view()));
  EXPECT_ANY_THROW(matmul(b.view(), b.view(), b.view()));
}

TEST(Matmul, RefusesShapesThatDoNotFit) {
  Matrix<float> a(2, 3), b(4, 2), c(2, 2);
  EXPECT_ANY_THROW(matmul(a.view(), b.view(), c.view()));
}

}  // namespace
}  // namespace ptrain::kernels
