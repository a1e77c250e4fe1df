#pragma once

#include <cstdint>

#include "engine/base/tensor.h"

namespace ptrain::optim {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
};

// One step on a run of elements, all [1, n] of one dtype: torch.optim.AdamW's rule. `scale`
// multiplies the gradient first (clip coefficient / number of targets). step counts from 1.
struct AdamWStep {
  double learning_rate = 0;
  std::int64_t step = 1;
  double scale = 1;
  bool decays = true;
};
void adamw(const AdamWOptions& options, const AdamWStep& step, const Tensor& parameter,
           const Tensor& gradient, const Tensor& exp_avg, const Tensor& exp_avg_sq);

}  // namespace ptrain::optim
