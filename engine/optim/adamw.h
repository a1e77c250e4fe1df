#pragma once

#include "engine/base/tensor.h"
#include "engine/optim/step.h"

namespace ptrain::optim {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
};

// One step on a run of elements, all [1, n] of one dtype: torch.optim.AdamW's rule.
void adamw(const AdamWOptions& options, const Step& step, const Tensor& parameter,
           const Tensor& gradient, const Tensor& exp_avg, const Tensor& exp_avg_sq);

}  // namespace ptrain::optim
