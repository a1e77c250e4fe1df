#include "engine/layers/shared_experts.h"

#include "engine/kernels/rows.h"
#include "engine/layers/mlp_part.h"

namespace ptrain::layers {

using model::Role;

SharedExperts::SharedExperts(const model::Architecture& architecture, const model::LayerSpec& spec)
    : dtype_(architecture.dtype),
      compute_(spec.compute_dtype),
      hidden_(architecture.config.hidden_size),
      inner_(architecture.decoder.moe.shared_inner),
      activation_(activation_of(architecture.decoder.activation)),
      share_(architecture),
      up_(Places(architecture, spec), Role::kSharedUp, Role::kUpBias, 2),
      down_(Places(architecture, spec), Role::kSharedDown, Role::kDownBias, 1),
      gate_up_(Places(architecture, spec).stash("shared_gate_up")),
      product_(Places(architecture, spec).stash("shared_product")) {}

SharedExperts::Kept SharedExperts::kept(Workspace& work) const {
  return {work.stash_or_scratch(gate_up_, 2 * inner_, compute_),
          work.stash_or_scratch(product_, inner_, compute_),
          {}};
}

Task SharedExperts::multiply(const Context& context, const Tensor& normed, const Kept& kept) const {
  std::vector<Buffer> buffers;
  const Tensor whole = share_.whole_with(normed, context.arena, buffers);
  if (!share_.alone()) co_await exchange(share_.gather(whole));
  up_.forward(context, whole, kept.gate_up);
  remake(kept);
}

void SharedExperts::remake(const Kept& kept) const {
  kernels::gated(activation_, kept.gate_up, kept.product);
}

Task SharedExperts::add_output(const Context& context, const Kept& kept, const Tensor& y) const {
  if (share_.alone()) {
    down_.forward(context, kept.product, y, true);
    co_return;
  }
  std::vector<Buffer> buffers;
  const Tensor sum = take_scratch(context.arena, dtype_, kept.product.rows, hidden_, buffers);
  down_.forward(context, kept.product, sum);
  co_await exchange(share_.sum(sum));
  kernels::add(share_.own(sum), y);
}

Task SharedExperts::backward(const Context& context, std::span<const GradientTarget> gradients,
                             Kept& kept, const FeedForwardGradient& in) const {
  const std::int64_t tokens = in.dnormed.rows;
  kept.dy = take_scratch(context.arena, compute_, tokens, hidden_, in.scratch);
  copy_tensor(in.dy, share_.own(kept.dy));
  if (!share_.alone()) co_await exchange(share_.gather(kept.dy));
  {
    std::vector<Buffer> buffers;
    const Tensor dproduct = take_scratch(context.arena, dtype_, tokens, inner_, buffers);
    down_.backward(context, gradients, kept.dy, dproduct);
    kernels::gated_backward(activation_, kept.gate_up, dproduct);
    up_.backward(context, gradients, kept.gate_up, in.dnormed);
  }
  if (!share_.alone()) co_await exchange(share_.sum(in.dnormed));
}

Task SharedExperts::queue(const Context& context, std::span<const GradientTarget> gradients,
                          const Kept& kept, const FeedForwardGradient& in,
                          std::vector<WeightProduct>& products) const {
  const Tensor whole = share_.whole_with(in.normed, context.arena, in.scratch);
  if (!share_.alone()) co_await exchange(share_.gather(whole));
  down_.queue(kept.product, kept.dy, gradients, products);
  up_.queue(whole, kept.gate_up, gradients, products);
}

}  // namespace ptrain::layers
