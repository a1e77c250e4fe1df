#include "engine/optim/lion.h"

#include "engine/base/engine_error.h"
#include "engine/kernels/vector.h"

namespace ptrain::optim {
namespace {

template <class T>
struct LionUpdate {
  T* parameter;
  const T* gradient;
  T* exp_avg;
  std::int64_t size;
  T scale, beta1, beta2;
  T keep;  // 1 - learning rate * weight decay
  T learning_rate;
  T one_less_beta1, one_less_beta2;  // differences made in double
};

template <class T>
PT_INLINE void lion_update_body(const LionUpdate<T>& u) {
#pragma omp simd
  for (std::int64_t i = 0; i < u.size; ++i) {
    const T gradient = u.gradient[i] * u.scale;
    const T direction = u.exp_avg[i] * u.beta1 + gradient * u.one_less_beta1;
    const T sign = static_cast<T>(direction > 0) - static_cast<T>(direction < 0);
    u.exp_avg[i] = u.exp_avg[i] * u.beta2 + gradient * u.one_less_beta2;
    u.parameter[i] = u.parameter[i] * u.keep - u.learning_rate * sign;
  }
}
PT_KERNEL(lion_update, LionUpdate)

}  // namespace

void lion(const LionOptions& options, const Step& step, const Tensor& parameter,
          const Tensor& gradient, const Tensor& exp_avg) {
  PT_CHECK(parameter.rows == 1 && gradient.cols == parameter.cols &&
           exp_avg.cols == parameter.cols);
  const double decay = step.decays ? step.learning_rate * options.weight_decay : 0;
  dispatch(parameter.dtype, [&]<class T>(T) {
    lion_update(LionUpdate<T>{parameter.as<T>(), gradient.as<T>(), exp_avg.as<T>(), parameter.cols,
                              static_cast<T>(step.scale), static_cast<T>(options.beta1),
                              static_cast<T>(options.beta2), static_cast<T>(1 - decay),
                              static_cast<T>(step.learning_rate), static_cast<T>(1 - options.beta1),
                              static_cast<T>(1 - options.beta2)});
  });
}

}  // namespace ptrain::optim
