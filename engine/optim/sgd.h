#pragma once

#include "engine/base/tensor.h"
#include "engine/optim/step.h"

namespace ptrain::optim {

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;  // added to the gradient
};

// One step on a run of elements, all [1, n] of one dtype: torch.optim.SGD's rule. Without momentum
// the momentum buffer is empty.
void sgd(const SgdOptions& options, const Step& step, const Tensor& parameter,
         const Tensor& gradient, const Tensor& momentum_buffer);

}  // namespace ptrain::optim
