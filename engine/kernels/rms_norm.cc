#include "engine/kernels/rms_norm.h"

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
  N* y;
  T* scale;
  std::int64_t size;
  double eps;
  T offset;
};

template <class T, class N>
PT_INLINE void forward_row_body(const ForwardRow<T, N>& row) {
  const T squares = sum_over<T>(row.size, [&](std::int64_t i) { return row.x[i] * row.x[i]; });
  const T scale = T{1} / std::sqrt(squares / static_cast<T>(row.size) + static_cast<T>(row.eps));
  *row.scale = scale;
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i)
    row.y[i] = row.x[i] * scale * (row.weight[i] + row.offset);
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
  std::int64_t size;
  T scale;
  T offset;
};

template <class T>
PT_INLINE void backward_row_body(const BackwardRow<T>& row) {
  const T scale = row.scale;
  const T dot = sum_over<T>(row.size, [&](std::int64_t i) {
    const T product = row.dy[i] * row.x[i];
    row.dweight[i] += product * scale;
    return product * (row.weight[i] + row.offset);
  });
  const T along_x = dot * scale * scale * scale / static_cast<T>(row.size);
  if (row.residual == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < row.size; ++i)
      row.dx[i] = row.dy[i] * (row.weight[i] + row.offset) * scale - row.x[i] * along_x;
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < row.size; ++i)
      row.dx[i] =
          row.residual[i] + (row.dy[i] * (row.weight[i] + row.offset) * scale - row.x[i] * along_x);
  }
}
PT_KERNEL(backward_row, BackwardRow)

}  // namespace

void rms_norm(const Tensor& x, const RmsNormWeight& weight, double eps, const Tensor& y,
              const Tensor& scale) {
  PT_CHECK(x.cols == weight.weight.cols && y.cols == x.cols && y.rows == x.rows &&
           scale.rows == x.rows && wide_of(y.dtype) == x.dtype);
  const RowIn values(x.dtype, weight.weight);
  dispatch_compute(y.dtype, [&]<class T, class N>(T, N) {
    for (std::int64_t t = 0; t < x.rows; ++t)
      forward_row(ForwardRow<T, N>{x.as<T>() + t * x.stride, values.as<T>(),
                                   y.as<N>() + t * y.stride, scale.as<T>() + t * scale.stride,
                                   x.cols, eps, static_cast<T>(weight.offset)});
  });
}

void rms_norm_backward(const RmsNormGradient& in, const Tensor& dx, const Tensor& dweight) {
  PT_CHECK(in.x.cols == in.weight.weight.cols && dweight.cols == in.x.cols && dx.rows == in.x.rows);
  const RowIn weight(in.x.dtype, in.weight.weight);
  dispatch(in.x.dtype, [&]<class T>(T) {
    for (std::int64_t t = 0; t < in.x.rows; ++t) {
      const T* residual =
          in.residual.empty() ? nullptr : in.residual.as<T>() + t * in.residual.stride;
      backward_row(BackwardRow<T>{
          in.x.as<T>() + t * in.x.stride, weight.as<T>(), in.dy.as<T>() + t * in.dy.stride,
          residual, dx.as<T>() + t * dx.stride, dweight.as<T>(), in.x.cols,
          in.scale.as<T>()[t * in.scale.stride], static_cast<T>(in.weight.offset)});
    }
  });
}

}  // namespace ptrain::kernels
