#pragma once

#include "engine/base/tensor.h"
#include "engine/optim/step.h"

namespace ptrain::optim {

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1;
};

// One step on a run of elements, all [1, n] of one dtype, by the rule of "Symbolic Discovery of
// Optimization Algorithms" (2023): each element moves by the learning rate, in the direction of the
// sign of beta1 exp_avg + (1 - beta1) gradient.
void lion(const LionOptions& options, const Step& step, const Tensor& parameter,
          const Tensor& gradient, const Tensor& exp_avg);

}  // namespace ptrain::optim
