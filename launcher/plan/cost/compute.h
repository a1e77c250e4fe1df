#pragma once

#include "core/program/action.h"
#include "launcher/plan/cost/context.h"

namespace ptrain::plan {

// What one pass over one layer costs, before rates: all ranks multiply and move this much.
struct LayerWork {
  double matmul_flops = 0;
  double attention_flops = 0;
  double bytes = 0;  // read and written outside the matmuls' own caches
  bool operator==(const LayerWork&) const = default;
};

LayerWork forward_work(const CostContext& context, const model::LayerSpec& layer);
// Twice the FLOPs, 2.5 times those of attention; weights are read once, their gradients written,
// and read where they add to earlier ones; so are the gradients of activations.
LayerWork backward_work(const CostContext& context, const model::LayerSpec& layer,
                        bool accumulates);

// Seconds of an action that computes: FORWARD, RECOMPUTE, BACKWARD and the local part of GRAD_NORM
// and OPTIMIZER. 0 for the others.
double compute_seconds(const program::Action& action, const CostContext& context);

}  // namespace ptrain::plan
