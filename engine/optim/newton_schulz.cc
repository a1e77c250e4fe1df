#include "engine/optim/newton_schulz.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/engine_error.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/rows.h"

namespace ptrain::optim {
namespace {

constexpr int kSteps = 5;
constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315;
constexpr double kLeastNorm = 1e-7;

Tensor as_row(const Tensor& matrix) {
  return contiguous(matrix.data, matrix.dtype, 1, matrix.num_elements());
}

Tensor iterate(Tensor x, Tensor next, const Tensor& gram, const Tensor& square) {
  const double norm = std::sqrt(kernels::square_sum(as_row(x)));
  kernels::scale(1 / std::max(norm, kLeastNorm), x);
  for (int step = 0; step < kSteps; ++step) {
    kernels::matmul(x, x, gram, {.transpose_b = true});
    kernels::matmul(gram, gram, square);
    kernels::combine(kQuintic, square, kCubic, gram);
    kernels::matmul(square, x, next);
    kernels::combine(1, next, kLinear, x);
    std::swap(x, next);
  }
  return x;
}

}  // namespace

Tensor orthogonalise(const Tensor& matrix, const Tensor& scratch) {
  const std::int64_t rows = matrix.rows, cols = matrix.cols;
  PT_CHECK(rows <= cols && matrix.stride == cols);
  PT_CHECK(scratch.num_elements() >= rows * cols + 2 * rows * rows);
  Tensor free = scratch;
  const auto take = [&](std::int64_t width) {
    const Tensor taken = contiguous(free.data, matrix.dtype, rows, width);
    free = free.columns(rows * width, 0);
    return taken;
  };
  const Tensor next = take(cols), gram = take(rows), square = take(rows);
  return iterate(matrix, next, gram, square);
}

}  // namespace ptrain::optim
