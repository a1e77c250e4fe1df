#include "engine/optim/newton_schulz.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/engine_error.h"
#include "engine/kernels/matmul.h"

namespace ptrain::optim {
namespace {

constexpr int kSteps = 5;
constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315;
constexpr double kLeastNorm = 1e-7;

template <class T>
void normalise(T* values, std::int64_t size) {
  double squares = 0;
  for (std::int64_t i = 0; i < size; ++i)
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  const auto norm = static_cast<T>(std::max(std::sqrt(squares), kLeastNorm));
  for (std::int64_t i = 0; i < size; ++i) values[i] /= norm;
}

// to = factor * to + other_factor * other
template <class T>
void combine(T factor, T* to, T other_factor, const T* other, std::int64_t size) {
#pragma omp simd
  for (std::int64_t i = 0; i < size; ++i) to[i] = factor * to[i] + other_factor * other[i];
}

template <class T>
Tensor iterate(Tensor x, Tensor next, const Tensor& gram, const Tensor& square) {
  normalise(x.as<T>(), x.num_elements());
  for (int step = 0; step < kSteps; ++step) {
    kernels::matmul(x, x, gram, {.transpose_b = true});
    kernels::matmul(gram, gram, square);
    combine(static_cast<T>(kQuintic), square.as<T>(), static_cast<T>(kCubic), gram.as<T>(),
            gram.num_elements());
    kernels::matmul(square, x, next);
    combine(T{1}, next.as<T>(), static_cast<T>(kLinear), x.as<T>(), x.num_elements());
    std::swap(x, next);
  }
  return x;
}

}  // namespace

Tensor orthogonalise(const Tensor& matrix, const Tensor& scratch) {
  const std::int64_t rows = matrix.rows, cols = matrix.cols;
  PT_CHECK(rows <= cols && matrix.stride == cols);
  PT_CHECK(scratch.num_elements() >= rows * cols + 2 * rows * rows);
  return dispatch(matrix.dtype, [&]<class T>(T) {
    T* free = scratch.as<T>();
    const auto take = [&](std::int64_t width) {
      return contiguous(std::exchange(free, free + rows * width), matrix.dtype, rows, width);
    };
    const Tensor next = take(cols), gram = take(rows), square = take(rows);
    return iterate<T>(matrix, next, gram, square);
  });
}

}  // namespace ptrain::optim
