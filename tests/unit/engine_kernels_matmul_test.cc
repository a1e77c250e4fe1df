#include <gtest/gtest.h>
#include <omp.h>

#include "engine/base/bfloat16.h"
#include "engine/kernels/gemm_tile.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/own_gemm.h"
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

struct Sizes {
  std::int64_t m, n, k;
};

using Multiply = decltype(&matmul);

template <class In, class Out>
void expect_products(double bound, Sizes sizes = {7, 5, 9}, Multiply multiply = &matmul) {
  const auto [m, n, k] = sizes;
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const bool accumulate : {false, true}) {
        const MatmulOptions options{transpose_a, transpose_b, accumulate};
        auto a = Matrix<In>::random(transpose_a ? k : m, transpose_a ? m : k, 1, 3);
        auto b = Matrix<In>::random(transpose_b ? n : k, transpose_b ? k : n, 2, 2);
        auto c = Matrix<Out>::random(m, n, 3, 4);
        const test::Doubles wanted = product(a, b, c, options);
        multiply(a.view(), b.view(), c.view(), options);
        EXPECT_LT(test::largest_difference(c, wanted), bound)
            << transpose_a << transpose_b << accumulate << " of " << m << ' ' << n << ' ' << k;
        EXPECT_TRUE(c.gaps_untouched());
      }
}

TEST(Matmul, StridedRowsInEveryOrientation) {
  expect_products<double, double>(1e-13);
  expect_products<float, float>(1e-5);
}

// The products of bfloat16 values are exact in float32: only the sum rounds.
TEST(Matmul, MultipliesBFloat16IntoFloat32) { expect_products<BFloat16, float>(1e-5); }

// Nothing at all, whole tiles and parts of them, more than one block of columns and of k, k even
// and odd; rows that start with whole words and such that do not (Matrix puts gaps of 2 and 3
// behind them).
template <class In>
void expect_own_products(double bound) {
  if (!has_tile_units()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  for (const Sizes sizes : {Sizes{1, 1, 1},
                            {3, 5, 0},
                            {0, 5, 3},
                            {5, 0, 3},
                            {6, 64, 2},
                            {12, 128, 512},
                            {13, 70, 33},
                            {6, 257, 514},
                            {25, 300, 1025},
                            {53, 570, 40}})
    expect_products<In, float>(bound, sizes, &own_gemm);
}

template <class In>
void expect_equal_on_any_threads() {
  if (!has_tile_units()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  auto a = Matrix<In>::random(50, 90, 1), b = Matrix<In>::random(90, 70, 2);
  const auto on_threads = [&](int threads) {
    auto c = Matrix<float>::random(50, 70, 3);
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    own_gemm(a.view(), b.view(), c.view(), {.accumulate = true});
    omp_set_num_threads(before);
    return c.values;
  };
  const auto one = on_threads(1);
  for (const int threads : {2, 3, 16}) EXPECT_EQ(on_threads(threads), one) << threads;
}

TEST(OwnGemm, MultipliesFloat32) { expect_own_products<float>(3e-4); }
TEST(OwnGemm, MultipliesBFloat16) { expect_own_products<BFloat16>(3e-4); }
TEST(OwnGemm, SumsOfFloat32AreTheSameOnAnyNumberOfThreads) { expect_equal_on_any_threads<float>(); }
TEST(OwnGemm, SumsOfBFloat16AreTheSameOnAnyNumberOfThreads) {
  expect_equal_on_any_threads<BFloat16>();
}

TEST(OwnGemm, IsUsedWhereTheLibraryIsSlower) {
  const bool can = has_tile_units() && !is_made_by_intel();
  const auto is_used = [](DType dtype, Sizes sizes, bool transpose_a = false) {
    const auto [m, n, k] = sizes;
    const Tensor a = contiguous(nullptr, dtype, transpose_a ? k : m, transpose_a ? m : k);
    return uses_own_gemm(a, contiguous(nullptr, wide_of(dtype), m, n), {transpose_a});
  };
  EXPECT_EQ(is_used(DType::kFloat32, {128, 64, 128}), can);
  EXPECT_EQ(is_used(DType::kFloat32, {128, 64, 200}, true), can);
  EXPECT_EQ(is_used(DType::kBFloat16, {1, 1, 1}), can);
  EXPECT_FALSE(is_used(DType::kFloat32, {127, 64, 128}));
  EXPECT_FALSE(is_used(DType::kFloat32, {128, 64, 127}));
  EXPECT_FALSE(is_used(DType::kFloat32, {200, 64, 100}, true));
  EXPECT_FALSE(is_used(DType::kFloat32, {128, 96, 128}));
  EXPECT_FALSE(is_used(DType::kFloat64, {128, 64, 128}));
}

TEST(Matmul, LargeProductsOfFloat32) { expect_products<float, float>(3e-4, {130, 128, 140}); }

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
