#include "engine/layers/moe_part.h"

#include "engine/base/planted.h"
#include "engine/kernels/rows.h"

namespace ptrain::layers {

using kernels::ExpertRows;

MoePart::MoePart(const model::Architecture& architecture, const model::LayerSpec& spec)
    : dtype_(architecture.dtype),
      num_experts_(architecture.decoder.moe.num_experts),
      top_k_(architecture.decoder.moe.top_k),
      share_(architecture),
      router_(architecture, spec),
      routed_(architecture, spec) {
  if (architecture.decoder.moe.shared_inner > 0) shared_.emplace(architecture, spec);
}

MoePart::Kept MoePart::kept(Workspace& work) const {
  Kept kept{router_.kept(work), routed_.kept(work), {}};
  if (shared_) kept.shared = shared_->kept(work);
  return kept;
}

Task MoePart::forward(const Context& context, const Tensor& x2, const Tensor& normed,
                      const Kept& kept, const Tensor& y) const {
  co_await router_.choose(context, normed, kept.router);
  const ExpertRows rows = choices(kept);
  RoutedExperts::Kept routed = kept.routed;
  std::vector<Buffer> buffers;
  co_await routed_.tell(context, rows, routed);
  routed_.take_rows(context, rows, routed, buffers);
  co_await routed_.multiply(context, rows, normed, routed);
  if (shared_) co_await shared_->multiply(context, normed, kept.shared);
  copy_tensor(x2, y);
  if (shared_) co_await shared_->add_output(context, kept.shared, y);
  co_await routed_.add_output(context, rows, routed, kept.router.weights, y);
}

Task MoePart::recompute(const Context& context, const Tensor&, const Tensor& normed,
                        const Kept& kept) const {
  router_.follow(context, normed, kept.router);
  const ExpertRows rows = choices(kept);
  RoutedExperts::Kept routed = kept.routed;
  std::vector<Buffer> buffers;
  routed_.take_rows(context, rows, routed, buffers);
  co_await routed_.multiply(context, rows, normed, routed);
  if (shared_) co_await shared_->multiply(context, normed, kept.shared);
}

void MoePart::remake(const Context& context, const Kept& kept) const {
  router_.remake(kept.router);
  const ExpertRows rows = choices(kept);
  RoutedExperts::Kept routed = kept.routed;
  std::vector<Buffer> buffers;
  routed_.take_rows(context, rows, routed, buffers);
  routed_.remake(rows, routed);
  if (shared_) shared_->remake(kept.shared);
}

Task MoePart::backward(const Context& context, std::span<const GradientTarget> gradients,
                       Kept& kept, const FeedForwardGradient& in) const {
  const ExpertRows rows = choices(kept);
  std::vector<Buffer> buffers;
  const Tensor dweights = take_scratch(context.arena, dtype_, in.dy.rows, top_k_, buffers);
  const RoutedExperts::Gradient of_rows{in.dy, in.normed, kept.router.weights, in.scratch, buffers};
  co_await routed_.backward(context, rows, kept.routed, of_rows);
  const Tensor dnormed = share_.own(in.dnormed);
  if (shared_) {
    co_await shared_->backward(context, gradients, kept.shared, in);
  } else {
    kernels::set_zero(dnormed);
  }
  kernels::set_zero(dweights);
  co_await routed_.add_gradients(context, rows, kept.routed, dnormed, dweights);
  if (planted(Bug::kRouterDetached)) kernels::set_zero(dweights);
  const RouterPart::Gradient of_router{dweights, in.normed, in.sums.routers};
  co_await router_.backward(context, gradients, kept.router, of_router, dnormed);
}

Task MoePart::queue(const Context& context, std::span<const GradientTarget> gradients,
                    const Kept& kept, const FeedForwardGradient& in,
                    std::vector<WeightProduct>& products) const {
  routed_.queue(choices(kept), kept.routed, gradients, products);
  if (shared_) co_await shared_->queue(context, gradients, kept.shared, in, products);
}

}  // namespace ptrain::layers
