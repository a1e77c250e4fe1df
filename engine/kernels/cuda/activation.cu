#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/cuda/launch.h"

namespace ptrain::kernels {
namespace {

template <class T>
struct Slope {
  T value;       // of the activation
  T derivative;  // and its derivative
};

struct Silu {
  template <class T>
  PT_DEVICE static Slope<T> slope(T x) {
    const T sigmoid = T{1} / (T{1} + std::exp(-x));
    return {x * sigmoid, sigmoid * (T{1} + x * (T{1} - sigmoid))};
  }
};

// x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  static constexpr double kTwiceRoot = 2 * 0.79788456080286535588;
  static constexpr double kCubic = 0.044715;
  template <class T>
  PT_DEVICE static Slope<T> slope(T x) {
    const T twice_u = static_cast<T>(kTwiceRoot) * (x + static_cast<T>(kCubic) * x * x * x);
    const T s = T{1} / (T{1} + std::exp(-twice_u));
    const T inner = static_cast<T>(kTwiceRoot) * (T{1} + static_cast<T>(3 * kCubic) * x * x);
    return {x * s, s + x * s * (T{1} - s) * inner};
  }
};

// x times the share of a normal distribution below x.
struct Gelu {
  static constexpr double kRootHalf = 0.70710678118654752440;
  static constexpr double kDensity = 0.39894228040143267794;
  template <class T>
  PT_DEVICE static Slope<T> slope(T x) {
    const T below = T{0.5} * (T{1} + std::erf(x * static_cast<T>(kRootHalf)));
    return {x * below, below + x * static_cast<T>(kDensity) * std::exp(T{-0.5} * x * x)};
  }
};

// f(F{}) with the type of the activation.
template <class Run>
void with(Activation activation, const Run& run) {
  switch (activation) {
    case Activation::kSilu:
      return run(Silu{});
    case Activation::kGelu:
      return run(Gelu{});
    case Activation::kGeluTanh:
      return run(GeluTanh{});
  }
  throw_bug(__FILE__, __LINE__, "an activation of the list");
}

template <class F, class T, class N>
struct Gated {
  View<N> gate_up, product;
  std::int64_t size;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const {
    const T up = gate_up(t, size + i);
    product(t, i) = N(F::slope(T(gate_up(t, i))).value * up);
  }
};

template <class F, class T, class N>
struct GatedBackward {
  View<N> gate_up;
  View<T> dproduct;
  std::int64_t size;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const {
    const T up = gate_up(t, size + i), dy = dproduct(t, i);
    const Slope<T> slope = F::slope(T(gate_up(t, i)));
    gate_up(t, i) = N(dy * up * slope.derivative);
    gate_up(t, size + i) = N(dy * slope.value);
  }
};

template <class F, class T, class N>
struct Plain {
  View<N> x, product;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const {
    product(t, i) = N(F::slope(T(x(t, i))).value);
  }
};

template <class F, class T, class N>
struct PlainBackward {
  View<N> x;
  View<T> dproduct;
  PT_DEVICE void operator()(std::int64_t t, std::int64_t i) const {
    x(t, i) = N(dproduct(t, i) * F::slope(T(x(t, i))).derivative);
  }
};

void check_shapes(const Tensor& inputs, const Tensor& product, std::int64_t num_inputs) {
  PT_CHECK(inputs.cols == product.cols * num_inputs && inputs.rows == product.rows);
}

}  // namespace

void gated(Activation activation, const Tensor& gate_up, const Tensor& product) {
  PT_CHECK(gate_up.dtype == product.dtype);
  check_shapes(gate_up, product, 2);
  dispatch_compute(gate_up.dtype, [&]<class T, class N>(T, N) {
    with(activation, [&]<class F>(F) {
      each_element(product.rows, product.cols,
                   Gated<F, T, N>{View<N>(gate_up), View<N>(product), product.cols});
    });
  });
}

void gated_backward(Activation activation, const Tensor& gate_up, const Tensor& dproduct) {
  PT_CHECK(wide_of(gate_up.dtype) == dproduct.dtype);
  check_shapes(gate_up, dproduct, 2);
  dispatch_compute(gate_up.dtype, [&]<class T, class N>(T, N) {
    with(activation, [&]<class F>(F) {
      each_element(dproduct.rows, dproduct.cols,
                   GatedBackward<F, T, N>{View<N>(gate_up), View<T>(dproduct), dproduct.cols});
    });
  });
}

void activate(Activation activation, const Tensor& x, const Tensor& product) {
  PT_CHECK(x.dtype == product.dtype);
  check_shapes(x, product, 1);
  dispatch_compute(x.dtype, [&]<class T, class N>(T, N) {
    with(activation, [&]<class F>(F) {
      each_element(x.rows, x.cols, Plain<F, T, N>{View<N>(x), View<N>(product)});
    });
  });
}

void activate_backward(Activation activation, const Tensor& x, const Tensor& dproduct) {
  PT_CHECK(wide_of(x.dtype) == dproduct.dtype);
  check_shapes(x, dproduct, 1);
  dispatch_compute(x.dtype, [&]<class T, class N>(T, N) {
    with(activation, [&]<class F>(F) {
      each_element(x.rows, x.cols, PlainBackward<F, T, N>{View<N>(x), View<T>(dproduct)});
    });
  });
}

}  // namespace ptrain::kernels
