#include "engine/optim/adamw.h"

#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/kernels/vector.h"

namespace ptrain::optim {
namespace {

// All that the elements of one step share, in the dtype of the elements.
template <class T>
struct Update {
  T* parameter;
  const T* gradient;
  T* exp_avg;
  T* exp_avg_sq;
  std::int64_t size;
  T scale, beta1, beta2, eps;
  T keep;                            // 1 - learning rate * weight decay
  T step_size;                       // learning rate / (1 - beta1^step)
  T root;                            // 1 / sqrt(1 - beta2^step)
  T one_less_beta1, one_less_beta2;  // differences made in double
};

template <class T>
PT_INLINE void update_body(const Update<T>& u) {
#pragma omp simd
  for (std::int64_t i = 0; i < u.size; ++i) {
    const T gradient = u.gradient[i] * u.scale;
    const T first = u.exp_avg[i] * u.beta1 + gradient * u.one_less_beta1;
    const T second = u.exp_avg_sq[i] * u.beta2 + gradient * gradient * u.one_less_beta2;
    u.exp_avg[i] = first;
    u.exp_avg_sq[i] = second;
    u.parameter[i] =
        u.parameter[i] * u.keep - u.step_size * first / (std::sqrt(second) * u.root + u.eps);
  }
}
PT_KERNEL(update, Update)

}  // namespace

void adamw(const AdamWOptions& options, const Step& step, const Tensor& parameter,
           const Tensor& gradient, const Tensor& exp_avg, const Tensor& exp_avg_sq) {
  PT_CHECK(parameter.rows == 1 && gradient.cols == parameter.cols &&
           exp_avg.cols == parameter.cols && exp_avg_sq.cols == parameter.cols);
  const double decay = step.decays ? step.learning_rate * options.weight_decay : 0;
  const double steps = static_cast<double>(step.step);
  const double bias1 = 1 - std::pow(options.beta1, steps);
  const double bias2 = 1 - std::pow(options.beta2, steps);
  dispatch(parameter.dtype, [&]<class T>(T) {
    update(Update<T>{parameter.as<T>(), gradient.as<T>(), exp_avg.as<T>(), exp_avg_sq.as<T>(),
                     parameter.cols, static_cast<T>(step.scale), static_cast<T>(options.beta1),
                     static_cast<T>(options.beta2), static_cast<T>(options.eps),
                     static_cast<T>(1 - decay), static_cast<T>(step.learning_rate / bias1),
                     static_cast<T>(1 / std::sqrt(bias2)), static_cast<T>(1 - options.beta1),
                     static_cast<T>(1 - options.beta2)});
  });
}

}  // namespace ptrain::optim
