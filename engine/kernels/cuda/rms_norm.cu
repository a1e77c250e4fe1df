#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/kernels/cuda/column_sums.h"
#include "engine/kernels/rms_norm.h"

namespace ptrain::kernels {
namespace {

// One row. W: of the weight.
template <class T, class N, class W>
struct Forward {
  View<T> x;
  const W* weight;
  View<N> y;
  View<T> scale;
  std::int64_t size;
  T eps, offset;
  PT_DEVICE void operator()(const Block& block) const {
    const std::int64_t t = block.index();
    const T squares = sum_over<T>(block, size, [&](std::int64_t i) { return x(t, i) * x(t, i); });
    const T factor = T{1} / std::sqrt(squares / static_cast<T>(size) + eps);
    block.each(1, [&](std::int64_t) { scale(t, 0) = factor; });
    block.each(size,
               [&](std::int64_t i) { y(t, i) = N(x(t, i) * factor * (T(weight[i]) + offset)); });
  }
};

template <class T, class W>
struct Backward {
  View<T> x, scale, dy, residual, dx;  // residual: no data where it is zero
  const W* weight;
  std::int64_t size;
  T offset;
  PT_DEVICE void operator()(const Block& block) const {
    const std::int64_t t = block.index();
    const T factor = scale(t, 0);
    const auto weighted = [&](std::int64_t i) { return dy(t, i) * (T(weight[i]) + offset); };
    const T dot = sum_over<T>(block, size, [&](std::int64_t i) { return weighted(i) * x(t, i); });
    const T along_x = dot * factor * factor * factor / static_cast<T>(size);
    block.each(size, [&](std::int64_t i) {
      const T through = weighted(i) * factor - x(t, i) * along_x;
      dx(t, i) = residual.data == nullptr ? through : residual(t, i) + through;
    });
  }
};

template <class T>
struct WeightTerm {
  View<T> x, scale, dy;
  PT_DEVICE T operator()(std::int64_t t, std::int64_t i) const {
    return dy(t, i) * x(t, i) * scale(t, 0);
  }
};

}  // namespace

void rms_norm(const Tensor& x, const RmsNormWeight& weight, double eps, const Tensor& y,
              const Tensor& scale) {
  PT_CHECK(x.cols == weight.weight.cols && y.cols == x.cols && y.rows == x.rows &&
           scale.rows == x.rows && wide_of(y.dtype) == x.dtype);
  dispatch_compute(y.dtype, [&]<class T, class N>(T, N) {
    dispatch_compute(weight.weight.dtype, [&]<class Wide, class W>(Wide, W) {
      if constexpr (std::is_same_v<T, Wide>)
        launch(x.rows, 0,
               Forward<T, N, W>{View<T>(x), weight.weight.as<W>(), View<N>(y), View<T>(scale),
                                x.cols, static_cast<T>(eps), static_cast<T>(weight.offset)});
      else
        throw_bug(__FILE__, __LINE__, "a weight whose sums are of the dtype of x");
    });
  });
}

// The weight's gradient first: dx may be dy.
void rms_norm_backward(const RmsNormGradient& in, const Tensor& dx, const Tensor& dweight) {
  const Tensor& weight = in.weight.weight;
  PT_CHECK(in.x.cols == weight.cols && dweight.cols == in.x.cols && dx.rows == in.x.rows);
  dispatch_compute(weight.dtype, [&]<class T, class W>(T, W) {
    PT_CHECK(wide_of(weight.dtype) == in.x.dtype);
    const View<T> x(in.x), scale(in.scale), dy(in.dy);
    add_column_sums(in.x.rows, in.x.cols, WeightTerm<T>{x, scale, dy}, dweight.as<T>());
    launch(in.x.rows, 0,
           Backward<T, W>{x, scale, dy, View<T>(in.residual), View<T>(dx), weight.as<W>(),
                          in.x.cols, static_cast<T>(in.weight.offset)});
  });
}

}  // namespace ptrain::kernels
