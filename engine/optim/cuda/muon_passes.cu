#include "engine/kernels/cuda/launch.h"
#include "engine/optim/muon_passes.h"

namespace ptrain::optim {
namespace {

using kernels::View;

template <class T>
struct TakeGradient {
  View<T> gradient, momentum_buffer, to;
  T scale, momentum, rest;
  bool nesterov, transposed;
  PT_DEVICE void operator()(std::int64_t row, std::int64_t col) const {
    const T value = gradient(row, col) * scale;
    const T mean = momentum * momentum_buffer(row, col) + rest * value;
    momentum_buffer(row, col) = mean;
    T& target = transposed ? to(col, row) : to(row, col);
    target = nesterov ? rest * value + momentum * mean : mean;
  }
};

template <class T>
struct Move {
  View<T> parameter, direction;
  T keep, rate;
  bool transposed;
  PT_DEVICE void operator()(std::int64_t row, std::int64_t col) const {
    const T step = transposed ? direction(col, row) : direction(row, col);
    parameter(row, col) = parameter(row, col) * keep - rate * step;
  }
};

}  // namespace

void take_gradient(const MuonOptions& options, double scale, const MuonGradient& in,
                   const Tensor& to) {
  dispatch(to.dtype, [&]<class T>(T) {
    kernels::each_element(
        in.gradient.rows, in.gradient.cols,
        TakeGradient<T>{View<T>(in.gradient), View<T>(in.momentum_buffer), View<T>(to),
                        static_cast<T>(scale), static_cast<T>(options.momentum),
                        static_cast<T>(1 - options.momentum), options.nesterov,
                        to.rows != in.gradient.rows});
  });
}

void apply_direction(const Tensor& parameter, const Tensor& direction, double keep, double rate) {
  dispatch(parameter.dtype, [&]<class T>(T) {
    kernels::each_element(parameter.rows, parameter.cols,
                          Move<T>{View<T>(parameter), View<T>(direction), static_cast<T>(keep),
                                  static_cast<T>(rate), direction.rows != parameter.rows});
  });
}

}  // namespace ptrain::optim
