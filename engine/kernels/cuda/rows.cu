#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/kernels/cuda/column_sums.h"
#include "engine/kernels/cuda/total.h"
#include "engine/kernels/rows.h"

namespace ptrain::kernels {
namespace {

template <class T, class N>
struct Add {
  View<N> x;
  View<T> y;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const { y(t, i) += T(x(t, i)); }
};

template <class T, class N>
struct Value {
  View<N> x;
  PT_DEVICE T operator()(std::int64_t t, std::int64_t i) const { return T(x(t, i)); }
};

template <class T>
struct Scale {
  View<T> y;
  T factor;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const { y(t, i) *= factor; }
};

template <class T>
struct Combine {
  View<T> x, y;
  T x_factor, y_factor;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const {
    y(t, i) = y_factor * y(t, i) + x_factor * x(t, i);
  }
};

template <class T>
struct Softcap {
  View<T> y;
  T cap;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const {
    y(t, i) = cap * std::tanh(y(t, i) / cap);
  }
};

template <class T>
struct SoftcapBackward {
  View<T> capped, dy;
  T cap;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const {
    const T share = capped(t, i) / cap;
    dy(t, i) *= T{1} - share * share;
  }
};

constexpr std::int64_t kSquaresAtATime = 1 << 16;  // elements whose squares one block adds up

template <class T>
struct Squares {
  const T* values;
  std::int64_t size;
  double* sums;
  PT_DEVICE void operator()(const Block& block) const {
    const std::int64_t begin = block.index() * kSquaresAtATime, rest = size - begin;
    const double sum = sum_over<double>(block, rest < kSquaresAtATime ? rest : kSquaresAtATime,
                                        [&](std::int64_t i) {
                                          const auto value = static_cast<double>(values[begin + i]);
                                          return value * value;
                                        });
    block.each(1, [&](std::int64_t) { sums[block.index()] = sum; });
  }
};

}  // namespace

// A row that is not apart from itself is added to every row.
void add_row(const Tensor& row, const Tensor& y) {
  PT_CHECK(row.rows == 1 && row.cols == y.cols && wide_of(row.dtype) == y.dtype);
  Tensor repeated = row;
  repeated.stride = 0;
  dispatch_compute(row.dtype, [&]<class T, class N>(T, N) {
    each_element(y.rows, y.cols, Add<T, N>{View<N>(repeated), View<T>(y)});
  });
}

void sum_rows(const Tensor& y, const Tensor& sum) {
  PT_CHECK(sum.rows == 1 && sum.cols == y.cols && wide_of(y.dtype) == sum.dtype);
  dispatch_compute(y.dtype, [&]<class T, class N>(T, N) {
    add_column_sums(y.rows, y.cols, Value<T, N>{View<N>(y)}, sum.as<T>());
  });
}

void add(const Tensor& x, const Tensor& y) {
  PT_CHECK(x.rows == y.rows && x.cols == y.cols && wide_of(x.dtype) == y.dtype);
  dispatch_compute(x.dtype, [&]<class T, class N>(T, N) {
    each_element(y.rows, y.cols, Add<T, N>{View<N>(x), View<T>(y)});
  });
}

void scale(double factor, const Tensor& y) {
  dispatch(y.dtype, [&]<class T>(T) {
    each_element(y.rows, y.cols, Scale<T>{View<T>(y), static_cast<T>(factor)});
  });
}

void combine(double y_factor, const Tensor& y, double x_factor, const Tensor& x) {
  PT_CHECK(x.rows == y.rows && x.cols == y.cols && x.dtype == y.dtype);
  dispatch(y.dtype, [&]<class T>(T) {
    each_element(
        y.rows, y.cols,
        Combine<T>{View<T>(x), View<T>(y), static_cast<T>(x_factor), static_cast<T>(y_factor)});
  });
}

void set_zero(const Tensor& y) { clear(y); }

double square_sum(const Tensor& row) {
  PT_CHECK(row.rows == 1);
  const std::int64_t blocks = (row.cols + kSquaresAtATime - 1) / kSquaresAtATime;
  const Scratch<double> sums(blocks);
  dispatch(row.dtype, [&]<class T>(T) {
    launch(blocks, 0, Squares<T>{row.as<T>(), row.cols, sums.data()});
  });
  return total_of(sums, blocks);
}

void softcap(double cap, const Tensor& y) {
  dispatch(y.dtype, [&]<class T>(T) {
    each_element(y.rows, y.cols, Softcap<T>{View<T>(y), static_cast<T>(cap)});
  });
}

void softcap_backward(double cap, const Tensor& capped, const Tensor& dy) {
  PT_CHECK(capped.rows == dy.rows && capped.cols == dy.cols);
  dispatch(dy.dtype, [&]<class T>(T) {
    each_element(dy.rows, dy.cols,
                 SoftcapBackward<T>{View<T>(capped), View<T>(dy), static_cast<T>(cap)});
  });
}

}  // namespace ptrain::kernels
