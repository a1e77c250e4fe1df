#include "engine/kernels/rows.h"

#include <cstring>

#include "engine/base/engine_error.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

template <class T>
struct Pair {
  const T* x;
  T* y;
  std::int64_t size;
  T factor = 0;
};

template <class T, class N>
struct Sum {
  const N* x;
  T* y;
  std::int64_t size;
};

template <class T, class N>
PT_INLINE void add_one_body(const Sum<T, N>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) row.y[i] += T(row.x[i]);
}
PT_COMPUTE_KERNEL(add_one, Sum)

template <class T>
PT_INLINE void scale_one_body(const Pair<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) row.y[i] *= row.factor;
}
PT_KERNEL(scale_one, Pair)

template <class T>
struct Combination {
  const T* x;
  T* y;
  std::int64_t size;
  T x_factor, y_factor;
};

template <class T>
PT_INLINE void combine_one_body(const Combination<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i)
    row.y[i] = row.y_factor * row.y[i] + row.x_factor * row.x[i];
}
PT_KERNEL(combine_one, Combination)

template <class T>
PT_INLINE void softcap_one_body(const Pair<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i)
    row.y[i] = row.factor * hyperbolic_tangent(row.y[i] / row.factor);
}
PT_KERNEL(softcap_one, Pair)

template <class T>
PT_INLINE void softcap_backward_one_body(const Pair<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) {
    const T share = row.x[i] / row.factor;
    row.y[i] *= T{1} - share * share;
  }
}
PT_KERNEL(softcap_backward_one, Pair)

template <class T>
T* row_of(const Tensor& tensor, std::int64_t t) {
  return tensor.as<T>() + t * tensor.stride;
}

}  // namespace

void add_row(const Tensor& row, const Tensor& y) {
  PT_CHECK(row.rows == 1 && row.cols == y.cols && wide_of(row.dtype) == y.dtype);
  dispatch_compute(row.dtype, [&]<class T, class N>(T, N) {
    for (std::int64_t t = 0; t < y.rows; ++t)
      add_one(Sum<T, N>{row.as<N>(), row_of<T>(y, t), y.cols});
  });
}

void sum_rows(const Tensor& y, const Tensor& sum) {
  PT_CHECK(sum.rows == 1 && sum.cols == y.cols && wide_of(y.dtype) == sum.dtype);
  dispatch_compute(y.dtype, [&]<class T, class N>(T, N) {
    for (std::int64_t t = 0; t < y.rows; ++t)
      add_one(Sum<T, N>{row_of<N>(y, t), sum.as<T>(), y.cols});
  });
}

void add(const Tensor& x, const Tensor& y) {
  PT_CHECK(x.rows == y.rows && x.cols == y.cols && wide_of(x.dtype) == y.dtype);
  dispatch_compute(x.dtype, [&]<class T, class N>(T, N) {
    for (std::int64_t t = 0; t < y.rows; ++t)
      add_one(Sum<T, N>{row_of<N>(x, t), row_of<T>(y, t), y.cols});
  });
}

void scale(double factor, const Tensor& y) {
  dispatch(y.dtype, [&]<class T>(T) {
    for (std::int64_t t = 0; t < y.rows; ++t)
      scale_one(Pair<T>{nullptr, row_of<T>(y, t), y.cols, static_cast<T>(factor)});
  });
}

void combine(double y_factor, const Tensor& y, double x_factor, const Tensor& x) {
  PT_CHECK(x.rows == y.rows && x.cols == y.cols && x.dtype == y.dtype);
  dispatch(y.dtype, [&]<class T>(T) {
    for (std::int64_t t = 0; t < y.rows; ++t)
      combine_one(Combination<T>{row_of<T>(x, t), row_of<T>(y, t), y.cols, static_cast<T>(x_factor),
                                 static_cast<T>(y_factor)});
  });
}

void set_zero(const Tensor& y) {
  const auto bytes = static_cast<std::size_t>(y.cols * size_of(y.dtype));
  for (std::int64_t t = 0; t < y.rows; ++t) std::memset(y.row_range(t, 1).data, 0, bytes);
}

double square_sum(const Tensor& row) {
  PT_CHECK(row.rows == 1);
  return dispatch(row.dtype, [&]<class T>(T) {
    const T* values = row.as<T>();
    double sum = 0;
    for (std::int64_t i = 0; i < row.cols; ++i)
      sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    return sum;
  });
}

void softcap(double cap, const Tensor& y) {
  dispatch(y.dtype, [&]<class T>(T) {
    for (std::int64_t t = 0; t < y.rows; ++t)
      softcap_one(Pair<T>{nullptr, row_of<T>(y, t), y.cols, static_cast<T>(cap)});
  });
}

void softcap_backward(double cap, const Tensor& capped, const Tensor& dy) {
  PT_CHECK(capped.rows == dy.rows && capped.cols == dy.cols);
  dispatch(dy.dtype, [&]<class T>(T) {
    for (std::int64_t t = 0; t < dy.rows; ++t)
      softcap_backward_one(
          Pair<T>{row_of<T>(capped, t), row_of<T>(dy, t), dy.cols, static_cast<T>(cap)});
  });
}

}  // namespace ptrain::kernels
