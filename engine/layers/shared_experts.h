#pragma once

#include <vector>

#include "engine/kernels/activation.h"
#include "engine/layers/feed_forward.h"
#include "engine/layers/linear.h"
#include "engine/layers/tensor_share.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

// The experts that every token passes, all of them as one gated MLP without a norm behind it, split
// over the tensor axis as FeedForward is.
class SharedExperts {
 public:
  SharedExperts(const model::Architecture& architecture, const model::LayerSpec& spec);

  // dy: the gradient of the output as products read it, whole.
  struct Kept {
    Tensor gate_up, product, dy;
  };
  Kept kept(Workspace& work) const;

  // What is kept.
  Task multiply(const Context& context, const Tensor& normed, const Kept& kept) const;
  void remake(const Kept& kept) const;
  // y += what they make of it.
  Task add_output(const Context& context, const Kept& kept, const Tensor& y) const;

  // dnormed, whole, is written; its own rows hold the sum over the ranks of the tensor axis.
  Task backward(const Context& context, std::span<const GradientTarget> gradients, Kept& kept,
                const FeedForwardGradient& in) const;
  Task queue(const Context& context, std::span<const GradientTarget> gradients, const Kept& kept,
             const FeedForwardGradient& in, std::vector<WeightProduct>& products) const;

 private:
  DType dtype_, compute_;
  std::int64_t hidden_, inner_;
  kernels::Activation activation_;
  TensorShare share_;
  Linears up_, down_;
  std::size_t gate_up_, product_;  // in the stash
};

}  // namespace ptrain::layers
