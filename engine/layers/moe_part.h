#pragma once

#include <optional>
#include <vector>

#include "engine/kernels/activation.h"
#include "engine/layers/expert_linears.h"
#include "engine/layers/feed_forward.h"
#include "engine/layers/linear.h"
#include "engine/layers/router_part.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

// A block's experts in place of its MLP, from its norm to the stream: a token passes those that the
// router chose, weighted, and the shared ones. Tokens are sorted by expert, so that each expert
// multiplies all of its own at once, and added up again in the order of their choices. The calls
// are those of FeedForward.
class MoePart {
 public:
  MoePart(const model::Architecture& architecture, const model::LayerSpec& spec);

  // gate_up [T top_k, 2 I] and product [T top_k, I]: rows sorted by expert; those behind the last
  // (choices that were dropped) are never read.
  struct Kept {
    RouterPart::Kept router;
    Tensor gate_up, product;
    Tensor shared_gate_up, shared_product;
    // Of backward, as products read them: inputs and output gradients, row by row; the latter
    // token by token where there are shared experts.
    Tensor inputs, drows, dy;
  };
  Kept kept(Workspace& work) const;

  // y = x2 + what experts make of normed.
  Task forward(const Context& context, const Tensor& x2, const Tensor& normed, const Kept& kept,
               const Tensor& y) const;
  // What is kept, by the same choice.
  Task recompute(const Context& context, const Tensor& x2, const Tensor& normed,
                 const Kept& kept) const;
  void remake(const Context& context, const Kept& kept) const;

  // dnormed is written.
  Task backward(const Context& context, std::span<const GradientTarget> gradients, Kept& kept,
                const FeedForwardGradient& in) const;
  Task queue(const Context& context, std::span<const GradientTarget> gradients, const Kept& kept,
             const FeedForwardGradient& in, std::vector<WeightProduct>& products) const;

 private:
  struct Shared {
    Linears up, down;
    std::size_t gate_up, product;  // in the stash
  };
  void run_experts(const Context& context, const kernels::ExpertRows& rows, const Tensor& normed,
                   const Kept& kept) const;
  void run_shared(const Context& context, const Tensor& normed, const Kept& kept) const;
  void add_outputs(const Context& context, const kernels::ExpertRows& rows, const Kept& kept,
                   const Tensor& y) const;
  // dnormed is written.
  void backward_shared(const Context& context, std::span<const GradientTarget> gradients,
                       const Kept& kept, const Tensor& dnormed) const;
  void backward_experts(const Context& context, const kernels::ExpertRows& rows, const Kept& kept,
                        const Tensor& dweights) const;
  Tensor used(const kernels::ExpertRows& rows, const Tensor& tensor) const {
    return tensor.row_range(0, rows.num_rows());
  }
  Tensor take(const Context& context, const kernels::ExpertRows& rows, DType dtype,
              std::int64_t cols, std::vector<Buffer>& buffers) const {
    return take_scratch(context.arena, dtype, rows.num_rows(), cols, buffers);
  }

  DType dtype_, compute_;
  std::int64_t hidden_, inner_, shared_inner_, num_experts_, top_k_;
  kernels::Activation activation_;
  RouterPart router_;
  ExpertLinears up_, down_;
  std::optional<Shared> shared_;
  struct {
    std::size_t gate_up, product;
  } stash_;
};

}  // namespace ptrain::layers
