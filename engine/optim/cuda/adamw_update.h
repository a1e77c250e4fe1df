#pragma once

#include <cmath>

#include "engine/kernels/cuda/launch.h"
#include "engine/optim/adamw.h"

namespace ptrain::optim {

// AdamW's rule for one element, in the dtype of the elements.
template <class T>
struct AdamWUpdate {
  AdamWUpdate(const AdamWOptions& options, const Step& step)
      : scale(static_cast<T>(step.scale)),
        beta1(static_cast<T>(options.beta1)),
        beta2(static_cast<T>(options.beta2)),
        eps(static_cast<T>(options.eps)),
        one_less_beta1(static_cast<T>(1 - options.beta1)),
        one_less_beta2(static_cast<T>(1 - options.beta2)) {
    const double decay = step.decays ? step.learning_rate * options.weight_decay : 0;
    const double steps = static_cast<double>(step.step);
    keep = static_cast<T>(1 - decay);
    step_size = static_cast<T>(step.learning_rate / (1 - std::pow(options.beta1, steps)));
    root = static_cast<T>(1 / std::sqrt(1 - std::pow(options.beta2, steps)));
  }

  PT_DEVICE void operator()(T& parameter, T gradient, T& first, T& second) const {
    const T scaled = gradient * scale;
    first = first * beta1 + scaled * one_less_beta1;
    second = second * beta2 + scaled * scaled * one_less_beta2;
    parameter = parameter * keep - step_size * first / (std::sqrt(second) * root + eps);
  }

  T scale, beta1, beta2, eps;
  T one_less_beta1, one_less_beta2;  // differences made in double
  T keep;                            // 1 - learning rate * weight decay
  T step_size;                       // learning rate / (1 - beta1^step)
  T root;                            // 1 / sqrt(1 - beta2^step)
};

}  // namespace ptrain::optim
