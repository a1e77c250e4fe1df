#include <gtest/gtest.h>
#include <omp.h>

#include <vector>

#include "engine/base/bfloat16.h"
#include "engine/kernels/matmul.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Matrix;

class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// What experts do: rows [rows_e, 12] times a matrix [10, 12] of each, some of them without rows,
// every second one added to what is there.
template <class In, class Out>
struct Experts {
  explicit Experts(const std::vector<std::int64_t>& rows) {
    for (const std::int64_t count : rows) {
      const auto seed = static_cast<unsigned>(x.size());
      x.push_back(Matrix<In>::random(count, 12, seed, 3));
      weights.push_back(Matrix<In>::random(10, 12, seed + 50));
      y.push_back(Matrix<Out>::random(count, 10, seed + 90, 2));
    }
    for (std::size_t e = 0; e < x.size(); ++e)
      products.push_back({x[e].view(), weights[e].view(), y[e].view(), e % 2 == 1});
  }

  std::vector<Matrix<In>> x, weights;
  std::vector<Matrix<Out>> y;
  std::vector<Product> products;
};

// Element [row, col] of x times the transposed weight of expert e, in double.
template <class In, class Out>
double dot(const Experts<In, Out>& experts, std::size_t e, std::int64_t row, std::int64_t col) {
  double sum = 0;
  for (std::int64_t k = 0; k < 12; ++k)
    sum +=
        static_cast<double>(experts.x[e](row, k)) * static_cast<double>(experts.weights[e](col, k));
  return sum;
}

template <class In, class Out>
void expect_products(const std::vector<std::int64_t>& rows, double bound) {
  for (const int num_threads : {1, 2, 5}) {
    const Threads threads(num_threads);
    Experts<In, Out> experts(rows);
    const std::vector<Matrix<Out>> before = experts.y;
    grouped_matmul(experts.products, {.transpose_b = true});
    for (std::size_t e = 0; e < rows.size(); ++e) {
      for (std::int64_t row = 0; row < rows[e]; ++row)
        for (std::int64_t col = 0; col < 10; ++col) {
          const double old = e % 2 == 1 ? static_cast<double>(before[e](row, col)) : 0;
          EXPECT_NEAR(static_cast<double>(experts.y[e](row, col)), old + dot(experts, e, row, col),
                      bound)
              << num_threads << " threads, product " << e;
        }
      EXPECT_TRUE(experts.y[e].gaps_untouched());
    }
  }
}

TEST(GroupedMatmul, OfManyThatShareOutWell) {
  expect_products<double, double>({3, 0, 1, 4, 2, 3, 0, 5}, 1e-12);
  expect_products<float, float>({3, 0, 1, 4, 2, 3, 0, 5}, 1e-5);
  expect_products<BFloat16, float>({3, 0, 1, 4, 2, 3, 0, 5}, 1e-5);
}

TEST(GroupedMatmul, OfOneThatHasMostOfTheWork) {
  expect_products<double, double>({40, 1, 0}, 1e-12);
  expect_products<double, double>({7}, 1e-12);
  expect_products<double, double>({0, 0}, 1e-12);
  expect_products<double, double>({}, 1e-12);
}

// In threads it would end the process.
TEST(GroupedMatmul, RefusesShapesThatDoNotFit) {
  for (const int num_threads : {1, 2}) {
    const Threads threads(num_threads);
    Experts<float, float> experts({2, 2, 2, 2});
    experts.products.back().c = experts.products.back().c.columns(0, 9);
    EXPECT_ANY_THROW(grouped_matmul(experts.products, {.transpose_b = true}));
  }
}

}  // namespace
}  // namespace ptrain::kernels
