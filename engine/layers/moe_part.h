#pragma once

#include <optional>
#include <vector>

#include "engine/layers/feed_forward.h"
#include "engine/layers/routed_experts.h"
#include "engine/layers/router_part.h"
#include "engine/layers/shared_experts.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

// A block's experts in place of its MLP, from its norm to the stream: a token passes those that the
// router chose, weighted, and the shared ones. The calls are those of FeedForward.
class MoePart {
 public:
  MoePart(const model::Architecture& architecture, const model::LayerSpec& spec);

  struct Kept {
    RouterPart::Kept router;
    RoutedExperts::Kept routed;
    SharedExperts::Kept shared;
  };
  Kept kept(Workspace& work) const;

  // y = x2 + what experts make of normed.
  Task forward(const Context& context, const Tensor& x2, const Tensor& normed, const Kept& kept,
               const Tensor& y) const;
  // What is kept, by the same choice.
  Task recompute(const Context& context, const Tensor& x2, const Tensor& normed,
                 const Kept& kept) const;
  void remake(const Context& context, const Kept& kept) const;

  // dnormed, whole, is written; its own rows are the gradient.
  Task backward(const Context& context, std::span<const GradientTarget> gradients, Kept& kept,
                const FeedForwardGradient& in) const;
  Task queue(const Context& context, std::span<const GradientTarget> gradients, const Kept& kept,
             const FeedForwardGradient& in, std::vector<WeightProduct>& products) const;

 private:
  kernels::ExpertRows choices(const Kept& kept) const {
    return kernels::sort_by_expert(kept.router.chosen, num_experts_);
  }

  DType dtype_;
  std::int64_t num_experts_, top_k_;
  TensorShare share_;
  RouterPart router_;
  RoutedExperts routed_;
  std::optional<SharedExperts> shared_;
};

}  // namespace ptrain::layers
