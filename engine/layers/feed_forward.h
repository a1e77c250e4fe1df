#pragma once

#include <vector>

#include "engine/layers/mlp_part.h"
#include "engine/layers/residual_part.h"
#include "engine/layers/tensor_share.h"

namespace ptrain::layers {

// What the backward of a feed-forward works with.
struct FeedForwardGradient {
  Tensor normed;  // as in forward
  Tensor dy;      // of the stream
  Tensor dnormed;
  std::vector<Buffer>& scratch;  // takes what products read
  LossSums& sums;
};

// A block's dense feed-forward, from its norm to the stream: y = x2 + down(product of normed).
// MoePart has the same calls.
class FeedForward {
 public:
  FeedForward(const model::Architecture& architecture, const model::LayerSpec& spec);

  // ddown: the gradient of down's output as products read it, whole.
  struct Kept {
    MlpPart::Kept mlp;
    ResidualPart::Kept down;
    Tensor ddown;
  };
  Kept kept(Workspace& work) const { return {mlp_.kept(work), down_.kept(work), {}}; }

  Task forward(const Context& context, const Tensor& x2, const Tensor& normed, const Kept& kept,
               const Tensor& y) const;
  // What is kept.
  Task recompute(const Context& context, const Tensor& x2, const Tensor& normed,
                 const Kept& kept) const;
  void remake(const Context& context, const Kept& kept) const;

  // dnormed, whole, is written; its own rows hold the sum over the ranks of the tensor axis.
  Task backward(const Context& context, std::span<const GradientTarget> gradients, Kept& kept,
                const FeedForwardGradient& in) const;
  Task queue(const Context& context, std::span<const GradientTarget> gradients, const Kept& kept,
             const FeedForwardGradient& in, std::vector<WeightProduct>& products) const;

 private:
  Task multiply(const Context& context, const Tensor& normed, const Kept& kept) const;

  DType dtype_, compute_;
  std::int64_t hidden_;
  TensorShare share_;
  MlpPart mlp_;
  ResidualPart down_;
};

}  // namespace ptrain::layers
