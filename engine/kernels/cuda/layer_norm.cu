#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/kernels/cuda/column_sums.h"
#include "engine/kernels/layer_norm.h"

namespace ptrain::kernels {
namespace {

// One row. W: of weight and bias.
template <class T, class N, class W>
struct Forward {
  View<T> x;
  const W *weight, *bias;
  View<N> y;
  View<T> statistics;
  std::int64_t size;
  T eps;
  PT_DEVICE void operator()(const Block& block) const {
    const std::int64_t t = block.index();
    const auto count = static_cast<T>(size);
    const T mean = sum_over<T>(block, size, [&](std::int64_t i) { return x(t, i); }) / count;
    const T squares = sum_over<T>(
        block, size, [&](std::int64_t i) { return (x(t, i) - mean) * (x(t, i) - mean); });
    const T scale = T{1} / std::sqrt(squares / count + eps);
    block.each(2, [&](std::int64_t i) { statistics(t, i) = i == 0 ? mean : scale; });
    block.each(size, [&](std::int64_t i) {
      y(t, i) = N((x(t, i) - mean) * scale * T(weight[i]) + T(bias[i]));
    });
  }
};

template <class T>
struct Inputs {
  View<T> x, statistics, dy;
  PT_DEVICE T unit(std::int64_t t, std::int64_t i) const {
    return (x(t, i) - statistics(t, 0)) * statistics(t, 1);
  }
};

template <class T, class W>
struct Backward {
  Inputs<T> in;
  View<T> residual, dx;  // residual: no data where it is zero
  const W* weight;
  std::int64_t size;
  PT_DEVICE void operator()(const Block& block) const {
    const std::int64_t t = block.index();
    const auto count = static_cast<T>(size);
    const auto weighted = [&](std::int64_t i) { return in.dy(t, i) * T(weight[i]); };
    const T along_ones = sum_over<T>(block, size, weighted) / count;
    const T along_x =
        sum_over<T>(block, size, [&](std::int64_t i) { return weighted(i) * in.unit(t, i); }) /
        count;
    block.each(size, [&](std::int64_t i) {
      const T through = in.statistics(t, 1) * (weighted(i) - along_ones - in.unit(t, i) * along_x);
      dx(t, i) = residual.data == nullptr ? through : residual(t, i) + through;
    });
  }
};

template <class T>
struct WeightTerm {
  Inputs<T> in;
  PT_DEVICE T operator()(std::int64_t t, std::int64_t i) const {
    return in.dy(t, i) * in.unit(t, i);
  }
};

template <class T>
struct BiasTerm {
  View<T> dy;
  PT_DEVICE T operator()(std::int64_t t, std::int64_t i) const { return dy(t, i); }
};

}  // namespace

void layer_norm(const Tensor& x, const LayerNormWeights& weights, double eps, const Tensor& y,
                const Tensor& statistics) {
  PT_CHECK(x.cols == weights.weight.cols && x.cols == weights.bias.cols && statistics.cols == 2);
  PT_CHECK(y.rows == x.rows && y.cols == x.cols && statistics.rows == x.rows);
  PT_CHECK(wide_of(y.dtype) == x.dtype && weights.weight.dtype == weights.bias.dtype);
  dispatch_compute(y.dtype, [&]<class T, class N>(T, N) {
    dispatch_compute(weights.weight.dtype, [&]<class Wide, class W>(Wide, W) {
      if constexpr (std::is_same_v<T, Wide>)
        launch(x.rows, 0,
               Forward<T, N, W>{View<T>(x), weights.weight.as<W>(), weights.bias.as<W>(),
                                View<N>(y), View<T>(statistics), x.cols, static_cast<T>(eps)});
      else
        throw_bug(__FILE__, __LINE__, "weights whose sums are of the dtype of x");
    });
  });
}

// The weights' gradients first: dx may be dy.
void layer_norm_backward(const LayerNormGradient& in, const Tensor& dx,
                         const LayerNormWeights& dweights) {
  PT_CHECK(in.x.cols == in.weight.cols && dweights.weight.cols == in.x.cols);
  PT_CHECK(dx.rows == in.x.rows && dweights.bias.cols == in.x.cols);
  PT_CHECK(wide_of(in.weight.dtype) == in.x.dtype);
  dispatch_compute(in.weight.dtype, [&]<class T, class W>(T, W) {
    const std::int64_t rows = in.x.rows, cols = in.x.cols;
    const Inputs<T> inputs{View<T>(in.x), View<T>(in.statistics), View<T>(in.dy)};
    add_column_sums(rows, cols, WeightTerm<T>{inputs}, dweights.weight.as<T>());
    add_column_sums(rows, cols, BiasTerm<T>{inputs.dy}, dweights.bias.as<T>());
    launch(rows, 0,
           Backward<T, W>{inputs, View<T>(in.residual), View<T>(dx), in.weight.as<W>(), cols});
  });
}

}  // namespace ptrain::kernels
