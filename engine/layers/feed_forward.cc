#include "engine/layers/feed_forward.h"

namespace ptrain::layers {

using model::Role;

FeedForward::FeedForward(const model::Architecture& architecture, const model::LayerSpec& spec)
    : dtype_(architecture.dtype),
      compute_(spec.compute_dtype),
      hidden_(architecture.config.hidden_size),
      share_(architecture),
      mlp_(architecture, spec),
      down_(architecture, spec,
            {Role::kDown, Role::kDownBias, Role::kDownNorm, Role::kDownNormBias}, "down") {}

Task FeedForward::multiply(const Context& context, const Tensor& normed, const Kept& kept) const {
  std::vector<Buffer> buffers;
  const Tensor whole = share_.whole_with(normed, context.arena, buffers);
  if (!share_.alone()) co_await exchange(share_.gather(whole));
  mlp_.forward(context, whole, kept.mlp);
}

Task FeedForward::forward(const Context& context, const Tensor& x2, const Tensor& normed,
                          const Kept& kept, const Tensor& y) const {
  co_await multiply(context, normed, kept);
  co_await down_.forward(context, x2, kept.mlp.product, kept.down, y);
}

Task FeedForward::recompute(const Context& context, const Tensor& x2, const Tensor& normed,
                            const Kept& kept) const {
  co_await multiply(context, normed, kept);
  if (!down_.has_norm()) co_return;
  std::vector<Buffer> buffers;
  const Tensor y = take_scratch(context.arena, dtype_, x2.rows, hidden_, buffers);
  co_await down_.forward(context, x2, kept.mlp.product, kept.down, y);
}

void FeedForward::remake(const Context&, const Kept& kept) const { mlp_.remake(kept.mlp); }

Task FeedForward::backward(const Context& context, std::span<const GradientTarget> gradients,
                           Kept& kept, const FeedForwardGradient& in) const {
  const std::int64_t tokens = in.dnormed.rows;
  kept.ddown = take_scratch(context.arena, compute_, tokens, hidden_, in.scratch);
  down_.through_norm(context, gradients, kept.down, in.dy, share_.own(kept.ddown));
  if (!share_.alone()) co_await exchange(share_.gather(kept.ddown));
  std::vector<Buffer> buffers;
  const Tensor dproduct =
      take_scratch(context.arena, dtype_, tokens, kept.mlp.product.cols, buffers);
  down_.backward(context, gradients, kept.ddown, dproduct);
  mlp_.backward(context, gradients, kept.mlp, dproduct, in.dnormed);
  if (!share_.alone()) co_await exchange(share_.sum(in.dnormed));
}

Task FeedForward::queue(const Context& context, std::span<const GradientTarget> gradients,
                        const Kept& kept, const FeedForwardGradient& in,
                        std::vector<WeightProduct>& products) const {
  const Tensor whole = share_.whole_with(in.normed, context.arena, in.scratch);
  if (!share_.alone()) co_await exchange(share_.gather(whole));
  down_.queue(kept.mlp.product, kept.ddown, gradients, products);
  mlp_.queue(whole, kept.mlp, gradients, products);
}

}  // namespace ptrain::layers
