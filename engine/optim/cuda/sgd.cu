#include "engine/base/engine_error.h"
#include "engine/kernels/cuda/launch.h"
#include "engine/optim/sgd.h"

namespace ptrain::optim {
namespace {

template <class T>
struct SgdUpdate {
  T* parameter;
  const T* gradient;
  T* momentum_buffer;  // null: none
  T scale, decay, learning_rate, momentum;
  T gradient_share;  // 1 with nesterov: the update looks ahead by one more gradient
  T buffer_share;
  PT_DEVICE void operator()(std::int64_t, std::int64_t i) const {
    const T decayed = gradient[i] * scale + decay * parameter[i];
    T direction = decayed;
    if (momentum_buffer != nullptr) {
      const T buffer = momentum_buffer[i] * momentum + decayed;
      momentum_buffer[i] = buffer;
      direction = gradient_share * decayed + buffer_share * buffer;
    }
    parameter[i] -= learning_rate * direction;
  }
};

}  // namespace

void sgd(const SgdOptions& options, const Step& step, const Tensor& parameter,
         const Tensor& gradient, const Tensor& momentum_buffer) {
  PT_CHECK(parameter.rows == 1 && gradient.cols == parameter.cols);
  PT_CHECK(momentum_buffer.empty() || momentum_buffer.cols == parameter.cols);
  const double decay = step.decays ? options.weight_decay : 0;
  dispatch(parameter.dtype, [&]<class T>(T) {
    kernels::each_element(
        1, parameter.cols,
        SgdUpdate<T>{parameter.as<T>(), gradient.as<T>(), momentum_buffer.as<T>(),
                     static_cast<T>(step.scale), static_cast<T>(decay),
                     static_cast<T>(step.learning_rate), static_cast<T>(options.momentum),
                     static_cast<T>(options.nesterov ? 1 : 0),
                     static_cast<T>(options.nesterov ? options.momentum : 1)});
  });
}

}  // namespace ptrain::optim
