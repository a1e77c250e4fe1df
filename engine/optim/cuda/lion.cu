#include "engine/base/engine_error.h"
#include "engine/kernels/cuda/launch.h"
#include "engine/optim/lion.h"

namespace ptrain::optim {
namespace {

template <class T>
struct LionUpdate {
  T* parameter;
  const T* gradient;
  T* exp_avg;
  T scale, beta1, beta2;
  T one_less_beta1, one_less_beta2;  // differences made in double
  T keep;                            // 1 - learning rate * weight decay
  T learning_rate;
  PT_DEVICE void operator()(std::int64_t, std::int64_t i) const {
    const T scaled = gradient[i] * scale;
    const T direction = exp_avg[i] * beta1 + scaled * one_less_beta1;
    const T sign = static_cast<T>(direction > 0) - static_cast<T>(direction < 0);
    exp_avg[i] = exp_avg[i] * beta2 + scaled * one_less_beta2;
    parameter[i] = parameter[i] * keep - learning_rate * sign;
  }
};

}  // namespace

void lion(const LionOptions& options, const Step& step, const Tensor& parameter,
          const Tensor& gradient, const Tensor& exp_avg) {
  PT_CHECK(parameter.rows == 1 && gradient.cols == parameter.cols &&
           exp_avg.cols == parameter.cols);
  const double decay = step.decays ? step.learning_rate * options.weight_decay : 0;
  dispatch(parameter.dtype, [&]<class T>(T) {
    kernels::each_element(
        1, parameter.cols,
        LionUpdate<T>{parameter.as<T>(), gradient.as<T>(), exp_avg.as<T>(),
                      static_cast<T>(step.scale), static_cast<T>(options.beta1),
                      static_cast<T>(options.beta2), static_cast<T>(1 - options.beta1),
                      static_cast<T>(1 - options.beta2), static_cast<T>(1 - decay),
                      static_cast<T>(step.learning_rate)});
  });
}

}  // namespace ptrain::optim
