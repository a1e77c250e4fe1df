#include "engine/optim/sgd.h"

#include "engine/base/engine_error.h"
#include "engine/kernels/vector.h"

namespace ptrain::optim {
namespace {

template <class T>
struct PlainUpdate {
  T* parameter;
  const T* gradient;
  std::int64_t size;
  T scale, decay, learning_rate;
};

template <class T>
struct MomentumUpdate {
  PlainUpdate<T> plain;
  T* momentum_buffer;
  T momentum;
  T gradient_share;  // 1 with nesterov: the update looks ahead by one more gradient
  T buffer_share;
};

template <class T>
PT_INLINE void plain_update_body(const PlainUpdate<T>& u) {
#pragma omp simd
  for (std::int64_t i = 0; i < u.size; ++i) {
    const T gradient = u.gradient[i] * u.scale + u.decay * u.parameter[i];
    u.parameter[i] -= u.learning_rate * gradient;
  }
}
PT_KERNEL(plain_update, PlainUpdate)

template <class T>
PT_INLINE void momentum_update_body(const MomentumUpdate<T>& u) {
  const PlainUpdate<T>& p = u.plain;
#pragma omp simd
  for (std::int64_t i = 0; i < p.size; ++i) {
    const T gradient = p.gradient[i] * p.scale + p.decay * p.parameter[i];
    const T buffer = u.momentum_buffer[i] * u.momentum + gradient;
    u.momentum_buffer[i] = buffer;
    p.parameter[i] -= p.learning_rate * (u.gradient_share * gradient + u.buffer_share * buffer);
  }
}
PT_KERNEL(momentum_update, MomentumUpdate)

}  // namespace

void sgd(const SgdOptions& options, const Step& step, const Tensor& parameter,
         const Tensor& gradient, const Tensor& momentum_buffer) {
  PT_CHECK(parameter.rows == 1 && gradient.cols == parameter.cols);
  const double decay = step.decays ? options.weight_decay : 0;
  dispatch(parameter.dtype, [&]<class T>(T) {
    const PlainUpdate<T> plain{parameter.as<T>(),     gradient.as<T>(),
                               parameter.cols,        static_cast<T>(step.scale),
                               static_cast<T>(decay), static_cast<T>(step.learning_rate)};
    if (momentum_buffer.empty()) return plain_update(plain);
    PT_CHECK(momentum_buffer.cols == parameter.cols);
    momentum_update(MomentumUpdate<T>{plain, momentum_buffer.as<T>(),
                                      static_cast<T>(options.momentum),
                                      static_cast<T>(options.nesterov ? 1 : 0),
                                      static_cast<T>(options.nesterov ? options.momentum : 1)});
  });
}

}  // namespace ptrain::optim
