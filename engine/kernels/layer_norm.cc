#include "engine/kernels/layer_norm.h"

#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/fold.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

template <class T, class N>
struct ForwardRow {
  const T* x;
  const T* weight;
  const T* bias;
  N* y;
  T* statistics;
  std::int64_t size;
  double eps;
};

template <class T, class N>
PT_INLINE void forward_row_body(const ForwardRow<T, N>& row) {
  const auto size = static_cast<T>(row.size);
  const T mean = sum_over<T>(row.size, [&](std::int64_t i) { return row.x[i]; }) / size;
  const T squares =
      sum_over<T>(row.size, [&](std::int64_t i) { return (row.x[i] - mean) * (row.x[i] - mean); });
  const T scale = T{1} / std::sqrt(squares / size + static_cast<T>(row.eps));
  row.statistics[0] = mean;
  row.statistics[1] = scale;
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i)
    row.y[i] = (row.x[i] - mean) * scale * row.weight[i] + row.bias[i];
}
PT_COMPUTE_KERNEL(forward_row, ForwardRow)

template <class T>
struct BackwardRow {
  const T* x;
  const T* weight;
  const T* dy;
  const T* residual;  // null: zero
  T* dx;
  T* dweight;
  T* dbias;
  std::int64_t size;
  T mean, scale;
};

template <class T>
PT_INLINE void backward_row_body(const BackwardRow<T>& row) {
  const auto size = static_cast<T>(row.size);
  const T mean = row.mean, scale = row.scale;
  const T along_ones = sum_over<T>(row.size,
                                   [&](std::int64_t i) {
                                     row.dbias[i] += row.dy[i];
                                     return row.dy[i] * row.weight[i];
                                   }) /
                       size;
  const T along_x = sum_over<T>(row.size,
                                [&](std::int64_t i) {
                                  const T product = row.dy[i] * (row.x[i] - mean) * scale;
                                  row.dweight[i] += product;
                                  return product * row.weight[i];
                                }) /
                    size;
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) {
    const T unit = (row.x[i] - mean) * scale;
    const T through = scale * (row.dy[i] * row.weight[i] - along_ones - unit * along_x);
    row.dx[i] = row.residual == nullptr ? through : row.residual[i] + through;
  }
}
PT_KERNEL(backward_row, BackwardRow)

}  // namespace

void layer_norm(const Tensor& x, const LayerNormWeights& weights, double eps, const Tensor& y,
                const Tensor& statistics) {
  PT_CHECK(x.cols == weights.weight.cols && x.cols == weights.bias.cols && statistics.cols == 2);
  PT_CHECK(y.rows == x.rows && y.cols == x.cols && statistics.rows == x.rows);
  PT_CHECK(wide_of(y.dtype) == x.dtype);
  const RowIn weight(x.dtype, weights.weight), bias(x.dtype, weights.bias);
  dispatch_compute(y.dtype, [&]<class T, class N>(T, N) {
    for (std::int64_t t = 0; t < x.rows; ++t)
      forward_row(ForwardRow<T, N>{x.as<T>() + t * x.stride, weight.as<T>(), bias.as<T>(),
                                   y.as<N>() + t * y.stride,
                                   statistics.as<T>() + t * statistics.stride, x.cols, eps});
  });
}

void layer_norm_backward(const LayerNormGradient& in, const Tensor& dx,
                         const LayerNormWeights& dweights) {
  PT_CHECK(in.x.cols == in.weight.cols && dweights.weight.cols == in.x.cols);
  PT_CHECK(dx.rows == in.x.rows && dweights.bias.cols == in.x.cols);
  const RowIn weight(in.x.dtype, in.weight);
  dispatch(in.x.dtype, [&]<class T>(T) {
    for (std::int64_t t = 0; t < in.x.rows; ++t) {
      const T* residual =
          in.residual.empty() ? nullptr : in.residual.as<T>() + t * in.residual.stride;
      const T* statistics = in.statistics.as<T>() + t * in.statistics.stride;
      backward_row(BackwardRow<T>{in.x.as<T>() + t * in.x.stride, weight.as<T>(),
                                  in.dy.as<T>() + t * in.dy.stride, residual,
                                  dx.as<T>() + t * dx.stride, dweights.weight.as<T>(),
                                  dweights.bias.as<T>(), in.x.cols, statistics[0], statistics[1]});
    }
  });
}

}  // namespace ptrain::kernels
