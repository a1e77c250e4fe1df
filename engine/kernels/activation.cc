#include "engine/kernels/activation.h"

#include <cmath>
#include <numbers>

#include "engine/base/engine_error.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

// `gate` and `up` of one row; without a gate, `gate` is the only input. backward: both become their
// gradients, from the product's.
template <class T>
struct Row {
  T* gate;
  T* up;
  T* product;
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

template <class F, class T>
PT_INLINE void gated_row(const Row<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) row.product[i] = F::value(row.gate[i]) * row.up[i];
}

template <class F, class T>
PT_INLINE void gated_backward_row(const Row<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) {
    const T up = row.up[i], dy = row.product[i];
    const Slope<T> slope = F::slope(row.gate[i]);
    row.gate[i] = dy * up * slope.derivative;
    row.up[i] = dy * slope.value;
  }
}

template <class F, class T>
PT_INLINE void plain_row(const Row<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) row.product[i] = F::value(row.gate[i]);
}

template <class F, class T>
PT_INLINE void plain_backward_row(const Row<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i)
    row.gate[i] = row.product[i] * F::slope(row.gate[i]).derivative;
}

#define PT_ACTIVATION(name, F)                                   \
  template <class T>                                             \
  PT_INLINE void name##_gated_body(const Row<T>& row) {          \
    gated_row<F>(row);                                           \
  }                                                              \
  PT_KERNEL(name##_gated, Row)                                   \
  template <class T>                                             \
  PT_INLINE void name##_gated_backward_body(const Row<T>& row) { \
    gated_backward_row<F>(row);                                  \
  }                                                              \
  PT_KERNEL(name##_gated_backward, Row)                          \
  template <class T>                                             \
  PT_INLINE void name##_plain_body(const Row<T>& row) {          \
    plain_row<F>(row);                                           \
  }                                                              \
  PT_KERNEL(name##_plain, Row)                                   \
  template <class T>                                             \
  PT_INLINE void name##_plain_backward_body(const Row<T>& row) { \
    plain_backward_row<F>(row);                                  \
  }                                                              \
  PT_KERNEL(name##_plain_backward, Row)

PT_ACTIVATION(silu, Silu)
PT_ACTIVATION(gelu, Gelu)
PT_ACTIVATION(gelu_tanh, GeluTanh)

#undef PT_ACTIVATION

// The kernel of an activation, for one row.
template <class T>
using Kernel = void (*)(const Row<T>&);

template <class T>
Kernel<T> choose(Activation activation, Kernel<T> silu, Kernel<T> gelu, Kernel<T> gelu_tanh) {
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

template <class T>
void each_row(Kernel<T> kernel, const Tensor& inputs, const Tensor& product, bool has_gate) {
  PT_CHECK(inputs.cols == product.cols * (has_gate ? 2 : 1) && inputs.rows == product.rows);
  for (std::int64_t t = 0; t < inputs.rows; ++t) {
    T* gate = inputs.as<T>() + t * inputs.stride;
    kernel(Row<T>{gate, gate + product.cols, product.as<T>() + t * product.stride, product.cols});
  }
}

}  // namespace

void gated(Activation activation, const Tensor& gate_up, const Tensor& product) {
  dispatch(gate_up.dtype, [&]<class T>(T) {
    each_row<T>(choose<T>(activation, silu_gated, gelu_gated, gelu_tanh_gated), gate_up, product,
                true);
  });
}

void gated_backward(Activation activation, const Tensor& gate_up, const Tensor& dproduct) {
  dispatch(gate_up.dtype, [&]<class T>(T) {
    each_row<T>(
        choose<T>(activation, silu_gated_backward, gelu_gated_backward, gelu_tanh_gated_backward),
        gate_up, dproduct, true);
  });
}

void activate(Activation activation, const Tensor& x, const Tensor& product) {
  dispatch(x.dtype, [&]<class T>(T) {
    each_row<T>(choose<T>(activation, silu_plain, gelu_plain, gelu_tanh_plain), x, product, false);
  });
}

void activate_backward(Activation activation, const Tensor& x, const Tensor& dproduct) {
  dispatch(x.dtype, [&]<class T>(T) {
    each_row<T>(
        choose<T>(activation, silu_plain_backward, gelu_plain_backward, gelu_tanh_plain_backward),
        x, dproduct, false);
  });
}

}  // namespace ptrain::kernels
