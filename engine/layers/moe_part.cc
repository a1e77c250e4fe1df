#include "engine/layers/moe_part.h"

#include "engine/base/planted.h"
#include "engine/kernels/rows.h"

namespace ptrain::layers {

using kernels::ExpertRows;
using model::Role;

MoePart::MoePart(const model::Architecture& architecture, const model::LayerSpec& spec)
    : dtype_(architecture.dtype),
      compute_(architecture.compute_dtype),
      hidden_(architecture.config.hidden_size),
      inner_(architecture.decoder.moe.inner),
      shared_inner_(architecture.decoder.moe.shared_inner),
      num_experts_(architecture.decoder.moe.num_experts),
      top_k_(architecture.decoder.moe.top_k),
      activation_(activation_of(architecture.decoder.activation)),
      router_(architecture, spec),
      up_(Places(architecture, spec), Role::kExpertUp, 2),
      down_(Places(architecture, spec), Role::kExpertDown, 1) {
  const Places places(architecture, spec);
  stash_ = {places.stash("expert_gate_up"), places.stash("expert_product")};
  if (shared_inner_ == 0) return;
  shared_.emplace(Shared{Linears(places, Role::kSharedUp, Role::kUpBias, 2),
                         Linears(places, Role::kSharedDown, Role::kDownBias, 1),
                         places.stash("shared_gate_up"), places.stash("shared_product")});
}

// The room for rows is that of top_k for every token.
MoePart::Kept MoePart::kept(Workspace& work) const {
  Kept kept;
  kept.router = router_.kept(work);
  const auto by_row = [&](std::size_t index, std::int64_t cols) {
    const Tensor tokens = work.stream_stash_or_scratch(index, top_k_ * cols, compute_);
    return contiguous(tokens.data, compute_, tokens.rows * top_k_, cols);
  };
  kept.gate_up = by_row(stash_.gate_up, 2 * inner_);
  kept.product = by_row(stash_.product, inner_);
  if (!shared_) return kept;
  kept.shared_gate_up = work.stash_or_scratch(shared_->gate_up, 2 * shared_inner_, compute_);
  kept.shared_product = work.stash_or_scratch(shared_->product, shared_inner_, compute_);
  return kept;
}

Task MoePart::forward(const Context& context, const Tensor& x2, const Tensor& normed,
                      const Kept& kept, const Tensor& y) const {
  router_.choose(context, normed, kept.router);
  const ExpertRows rows = kernels::sort_by_expert(kept.router.chosen, num_experts_);
  run_experts(context, rows, normed, kept);
  run_shared(context, normed, kept);
  copy_tensor(x2, y);
  add_outputs(context, rows, kept, y);
  co_return;
}

Task MoePart::recompute(const Context& context, const Tensor&, const Tensor& normed,
                        const Kept& kept) const {
  router_.follow(context, normed, kept.router);
  run_experts(context, kernels::sort_by_expert(kept.router.chosen, num_experts_), normed, kept);
  run_shared(context, normed, kept);
  co_return;
}

void MoePart::remake(const Context&, const Kept& kept) const {
  router_.remake(kept.router);
  const ExpertRows rows = kernels::sort_by_expert(kept.router.chosen, num_experts_);
  kernels::gated(activation_, used(rows, kept.gate_up), used(rows, kept.product));
  if (shared_) kernels::gated(activation_, kept.shared_gate_up, kept.shared_product);
}

void MoePart::run_experts(const Context& context, const ExpertRows& rows, const Tensor& normed,
                          const Kept& kept) const {
  std::vector<Buffer> buffers;
  const Tensor inputs = take(context, rows, compute_, hidden_, buffers);
  kernels::take_rows(rows, normed, inputs);
  up_.forward(context, rows, inputs, used(rows, kept.gate_up));
  kernels::gated(activation_, used(rows, kept.gate_up), used(rows, kept.product));
}

void MoePart::run_shared(const Context& context, const Tensor& normed, const Kept& kept) const {
  if (!shared_) return;
  shared_->up.forward(context, normed, kept.shared_gate_up);
  kernels::gated(activation_, kept.shared_gate_up, kept.shared_product);
}

void MoePart::add_outputs(const Context& context, const ExpertRows& rows, const Kept& kept,
                          const Tensor& y) const {
  if (shared_) shared_->down.forward(context, kept.shared_product, y, true);
  std::vector<Buffer> buffers;
  const Tensor outputs = take(context, rows, dtype_, hidden_, buffers);
  down_.forward(context, rows, used(rows, kept.product), outputs);
  kernels::add_slots(rows, outputs, kept.router.weights, y);
}

Task MoePart::backward(const Context& context, std::span<const GradientTarget> gradients,
                       Kept& kept, const FeedForwardGradient& in) const {
  const ExpertRows rows = kernels::sort_by_expert(kept.router.chosen, num_experts_);
  kept.drows = take(context, rows, compute_, hidden_, in.scratch);
  kept.inputs = take(context, rows, compute_, hidden_, in.scratch);
  kernels::take_rows(rows, in.dy, kept.drows);
  kernels::take_rows(rows, in.normed, kept.inputs);
  if (shared_) {
    kept.dy = take_scratch(context.arena, compute_, in.dy.rows, hidden_, in.scratch);
    copy_tensor(in.dy, kept.dy);
  }
  std::vector<Buffer> buffers;
  const Tensor dweights = take_scratch(context.arena, dtype_, in.dy.rows, top_k_, buffers);
  backward_experts(context, rows, kept, dweights);
  backward_shared(context, gradients, kept, in.dnormed);
  {
    std::vector<Buffer> own;
    const Tensor dinputs = take(context, rows, dtype_, hidden_, own);
    up_.backward(context, rows, used(rows, kept.gate_up), dinputs);
    kernels::add_slots(rows, dinputs, Tensor(), in.dnormed);
  }
  router_.add_sums(context, kept.router, in.sums.routers);
  router_.backward(context, gradients, kept.router, {dweights, in.normed}, in.dnormed);
  co_return;
}

// A choice's weight gets the product of dy with the expert's output, which is that of dproduct with
// product: the output itself is not needed again.
void MoePart::backward_experts(const Context& context, const ExpertRows& rows, const Kept& kept,
                               const Tensor& dweights) const {
  const Tensor product = used(rows, kept.product);
  std::vector<Buffer> buffers;
  const Tensor dproduct = take(context, rows, dtype_, inner_, buffers);
  down_.backward(context, rows, kept.drows, dproduct);
  kernels::dot_slots(rows, dproduct, product, dweights);
  if (planted(Bug::kRouterDetached)) kernels::set_zero(dweights);
  kernels::scale_slots(rows, kept.router.weights, product);
  kernels::scale_slots(rows, kept.router.weights, dproduct);
  kernels::gated_backward(activation_, used(rows, kept.gate_up), dproduct);
}

void MoePart::backward_shared(const Context& context, std::span<const GradientTarget> gradients,
                              const Kept& kept, const Tensor& dnormed) const {
  if (!shared_) return kernels::set_zero(dnormed);
  std::vector<Buffer> buffers;
  const Tensor dproduct = take_scratch(context.arena, dtype_, dnormed.rows, shared_inner_, buffers);
  shared_->down.backward(context, gradients, kept.dy, dproduct);
  kernels::gated_backward(activation_, kept.shared_gate_up, dproduct);
  shared_->up.backward(context, gradients, kept.shared_gate_up, dnormed);
}

Task MoePart::queue(const Context&, std::span<const GradientTarget> gradients, const Kept& kept,
                    const FeedForwardGradient& in, std::vector<WeightProduct>& products) const {
  const ExpertRows rows = kernels::sort_by_expert(kept.router.chosen, num_experts_);
  if (!planted(Bug::kExpertsUntrained)) {
    down_.queue(rows, used(rows, kept.product), kept.drows, gradients, products);
    up_.queue(rows, kept.inputs, used(rows, kept.gate_up), gradients, products);
  }
  if (shared_) {
    shared_->down.queue(kept.shared_product, kept.dy, gradients, products);
    shared_->up.queue(in.normed, kept.shared_gate_up, gradients, products);
  }
  co_return;
}

}  // namespace ptrain::layers
