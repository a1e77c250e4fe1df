#pragma once

#include <span>

#include "core/program/action.h"
#include "core/program/keep.h"
#include "launcher/plan/cost/context.h"

namespace ptrain::plan {

// Seconds of one pass over one layer on an idle core, by what bounds them.
struct LayerSeconds {
  double matmul_s = 0;
  double attention_s = 0;
  double kept_s = 0;  // norms, rotary, SwiGLU, copies: counted by the stash that they make or read
  double loss_s = 0;
  double total() const { return matmul_s + attention_s + kept_s + loss_s; }
};

// The head keeps its input only: all its products and the loss are made in backward.
LayerSeconds forward_seconds(const CostContext& context, const model::LayerSpec& layer);
LayerSeconds backward_seconds(const CostContext& context, const model::LayerSpec& layer);
// The two parts of it: only blocks leave products for the second.
LayerSeconds backward_input_seconds(const CostContext& context, const model::LayerSpec& layer);
LayerSeconds backward_weight_seconds(const CostContext& context, const model::LayerSpec& layer);
// Of a recomputation that begins with what `from` names: all of forward, or its element-wise work.
LayerSeconds recompute_seconds(const CostContext& context, const model::LayerSpec& layer,
                               program::Keep from);

// Seconds of an action that computes: FORWARD, RECOMPUTE, all BACKWARD and the local part of
// GRAD_NORM and OPTIMIZER. 0 for the others.
double compute_seconds(const program::Action& action, const CostContext& context);

// What products with weights of `width` x `width` reach of the best rate: between the measured
// widths in proportion to the logarithm, beyond them the nearest.
cluster::PassRate share_at(std::span<const cluster::WidthShare> shares, double width);

}  // namespace ptrain::plan
