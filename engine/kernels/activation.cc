#include "engine/kernels/activation.h"

#include <cmath>
#include <numbers>

#include "engine/base/engine_error.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

// `gate` and `up` of one row; without a gate, `gate` is the only input.
template <class T, class N>
struct Row {
  const N* gate;
  const N* up;
  N* product;
  std::int64_t size;
};

// Both become their gradients, from the product's.
template <class T, class N>
struct GradientRow {
  N* gate;
  N* up;
  const T* dproduct;
  std::int64_t size;
};

template <class T>
struct Slope {
  T value;       // of the activation
  T derivative;  // and its derivative
};

struct Silu {
  template <class T>
  PT_INLINE static T value(T x) {
    return x / (T{1} + exponential(-x));
  }
  template <class T>
  PT_INLINE static Slope<T> slope(T x) {
    const T sigmoid = T{1} / (T{1} + exponential(-x));
    return {x * sigmoid, sigmoid * (T{1} + x * (T{1} - sigmoid))};
  }
};

// x / 2 (1 + tanh u) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  static constexpr double kRoot = 0.79788456080286535588;
  static constexpr double kCubic = 0.044715;
  template <class T>
  PT_INLINE static T sigmoid(T x) {
    const T twice = static_cast<T>(2 * kRoot) * (x + static_cast<T>(kCubic) * x * x * x);
    return T{1} / (T{1} + exponential(-twice));
  }
  template <class T>
  PT_INLINE static T value(T x) {
    return x * sigmoid(x);
  }
  template <class T>
  PT_INLINE static Slope<T> slope(T x) {
    const T s = sigmoid(x);
    const T inner = static_cast<T>(2 * kRoot) * (T{1} + static_cast<T>(3 * kCubic) * x * x);
    return {x * s, s + x * s * (T{1} - s) * inner};
  }
};

// x times the share of a normal distribution below x.
struct Gelu {
  static constexpr double kRootHalf = std::numbers::sqrt2 / 2;
  static constexpr double kDensity = std::numbers::inv_sqrtpi * kRootHalf;
  template <class T>
  PT_INLINE static T share(T x) {
    return T{0.5} * (T{1} + std::erf(x * static_cast<T>(kRootHalf)));
  }
  template <class T>
  PT_INLINE static T value(T x) {
    return x * share(x);
  }
  template <class T>
  PT_INLINE static Slope<T> slope(T x) {
    const T below = share(x);
    return {x * below, below + x * static_cast<T>(kDensity) * exponential(T{-0.5} * x * x)};
  }
};

template <class F, class T, class N>
PT_INLINE void gated_row(const Row<T, N>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i)
    row.product[i] = F::value(T(row.gate[i])) * T(row.up[i]);
}

template <class F, class T, class N>
PT_INLINE void gated_backward_row(const GradientRow<T, N>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) {
    const T up = row.up[i], dy = row.dproduct[i];
    const Slope<T> slope = F::slope(T(row.gate[i]));
    row.gate[i] = dy * up * slope.derivative;
    row.up[i] = dy * slope.value;
  }
}

template <class F, class T, class N>
PT_INLINE void plain_row(const Row<T, N>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) row.product[i] = F::value(T(row.gate[i]));
}

template <class F, class T, class N>
PT_INLINE void plain_backward_row(const GradientRow<T, N>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i)
    row.gate[i] = row.dproduct[i] * F::slope(T(row.gate[i])).derivative;
}

#define PT_ACTIVATION_KERNEL(name, Args, row_of, F)   \
  template <class T, class N>                         \
  PT_INLINE void name##_body(const Args<T, N>& row) { \
    row_of<F>(row);                                   \
  }                                                   \
  PT_COMPUTE_KERNEL(name, Args)

#define PT_ACTIVATION(name, F)                                                    \
  PT_ACTIVATION_KERNEL(name##_gated, Row, gated_row, F)                           \
  PT_ACTIVATION_KERNEL(name##_gated_backward, GradientRow, gated_backward_row, F) \
  PT_ACTIVATION_KERNEL(name##_plain, Row, plain_row, F)                           \
  PT_ACTIVATION_KERNEL(name##_plain_backward, GradientRow, plain_backward_row, F)

PT_ACTIVATION(silu, Silu)
PT_ACTIVATION(gelu, Gelu)
PT_ACTIVATION(gelu_tanh, GeluTanh)

#undef PT_ACTIVATION
#undef PT_ACTIVATION_KERNEL

// The kernel of an activation, for one row.
template <class Args>
using Kernel = void (*)(const Args&);

template <class Args>
Kernel<Args> choose(Activation activation, Kernel<Args> silu, Kernel<Args> gelu,
                    Kernel<Args> gelu_tanh) {
  switch (activation) {
    case Activation::kSilu:
      return silu;
    case Activation::kGelu:
      return gelu;
    case Activation::kGeluTanh:
      return gelu_tanh;
  }
  throw_bug(__FILE__, __LINE__, "an activation of the list");
}

// P: of the product or its gradient.
template <class N, class P, class Args>
void each_row(Kernel<Args> kernel, const Tensor& inputs, const Tensor& product, bool has_gate) {
  PT_CHECK(inputs.cols == product.cols * (has_gate ? 2 : 1) && inputs.rows == product.rows);
  for (std::int64_t t = 0; t < inputs.rows; ++t) {
    N* gate = inputs.as<N>() + t * inputs.stride;
    kernel(Args{gate, gate + product.cols, product.as<P>() + t * product.stride, product.cols});
  }
}

}  // namespace

void gated(Activation activation, const Tensor& gate_up, const Tensor& product) {
  PT_CHECK(gate_up.dtype == product.dtype);
  dispatch_compute(gate_up.dtype, [&]<class T, class N>(T, N) {
    using Args = Row<T, N>;
    each_row<N, N>(choose<Args>(activation, silu_gated, gelu_gated, gelu_tanh_gated), gate_up,
                   product, true);
  });
}

void gated_backward(Activation activation, const Tensor& gate_up, const Tensor& dproduct) {
  PT_CHECK(wide_of(gate_up.dtype) == dproduct.dtype);
  dispatch_compute(gate_up.dtype, [&]<class T, class N>(T, N) {
    using Args = GradientRow<T, N>;
    each_row<N, T>(choose<Args>(activation, silu_gated_backward, gelu_gated_backward,
                                gelu_tanh_gated_backward),
                   gate_up, dproduct, true);
  });
}

void activate(Activation activation, const Tensor& x, const Tensor& product) {
  PT_CHECK(x.dtype == product.dtype);
  dispatch_compute(x.dtype, [&]<class T, class N>(T, N) {
    using Args = Row<T, N>;
    each_row<N, N>(choose<Args>(activation, silu_plain, gelu_plain, gelu_tanh_plain), x, product,
                   false);
  });
}

void activate_backward(Activation activation, const Tensor& x, const Tensor& dproduct) {
  PT_CHECK(wide_of(x.dtype) == dproduct.dtype);
  dispatch_compute(x.dtype, [&]<class T, class N>(T, N) {
    using Args = GradientRow<T, N>;
    each_row<N, T>(choose<Args>(activation, silu_plain_backward, gelu_plain_backward,
                                gelu_tanh_plain_backward),
                   x, dproduct, false);
  });
}

}  // namespace ptrain::kernels
