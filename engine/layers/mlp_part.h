#pragma once

#include "engine/kernels/activation.h"
#include "engine/layers/linear.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

kernels::Activation activation_of(recipe::Activation activation);

// A block's feed-forward, from its norm to what the down projection reads.
class MlpPart {
 public:
  MlpPart(const model::Architecture& architecture, const model::LayerSpec& spec);

  // up: [T, 2 F] gate and up, or [T, F] up alone.
  struct Kept {
    Tensor up, product;
  };
  Kept kept(Workspace& work) const;

  void forward(const Context& context, const Tensor& normed, const Kept& kept) const;
  // The product again.
  void remake(const Kept& kept) const;
  // up becomes its gradient; dnormed is written.
  void backward(const Context& context, std::span<const GradientTarget> gradients, const Kept& kept,
                const Tensor& dproduct, const Tensor& dnormed) const;
  void queue(const Tensor& normed, const Kept& kept, std::span<const GradientTarget> gradients,
             std::vector<WeightProduct>& products) const;

 private:
  bool is_gated_;
  std::int64_t inner_;
  DType compute_;
  kernels::Activation activation_;
  Linears linears_;
  std::size_t up_, product_;  // in the stash
};

}  // namespace ptrain::layers
