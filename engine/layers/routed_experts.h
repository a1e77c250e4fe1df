#pragma once

#include <vector>

#include "engine/kernels/activation.h"
#include "engine/layers/expert_linears.h"
#include "engine/layers/expert_share.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

// The experts that a router chose, as a gated MLP each. Rows are choices of tokens, sorted by
// expert, so that each expert multiplies all of its own at once; where ranks share the experts,
// rows travel to them and back. `own`: what this rank's tokens chose.
class RoutedExperts {
 public:
  RoutedExperts(const model::Architecture& architecture, const model::LayerSpec& spec);

  // arrived: how many rows came from where (ExpertShare::tell); empty where no other rank shares.
  // gate_up [R, 2 I] and product [R, I] of the rows that came; in taller tensors the first R.
  struct Kept {
    Tensor arrived;
    Tensor gate_up, product;
    // Of backward, as products read them: inputs and output gradients. And of every row its weight
    // and the gradient of that.
    Tensor inputs, drows, weights, dweights;
  };
  Kept kept(Workspace& work) const;

  // What must be known before rows can travel; once, with the choice.
  Task tell(const Context& context, const kernels::ExpertRows& own, const Kept& kept) const;
  // Places for rows, in `buffers` what is not kept.
  void take_rows(const Context& context, const kernels::ExpertRows& own, Kept& kept,
                 std::vector<Buffer>& buffers) const;
  // What is kept of them, from normed [T, H].
  Task multiply(const Context& context, const kernels::ExpertRows& own, const Tensor& normed,
                const Kept& kept) const;
  void remake(const kernels::ExpertRows& own, const Kept& kept) const;
  // y += what they make of a token, weighted [T, top_k], in the order of its choices.
  Task add_output(const Context& context, const kernels::ExpertRows& own, const Kept& kept,
                  const Tensor& weights, const Tensor& y) const;

  // Gradients, in this order; `scratch` takes what products read, `buffers` what the next call
  // does.
  struct Gradient {
    Tensor dy, normed, weights;  // of a token: of the output; as in forward
    std::vector<Buffer>&scratch, &buffers;
  };
  Task backward(const Context& context, const kernels::ExpertRows& own, Kept& kept,
                const Gradient& in) const;
  // Added to: dnormed [T, H] and dweights [T, top_k].
  Task add_gradients(const Context& context, const kernels::ExpertRows& own, const Kept& kept,
                     const Tensor& dnormed, const Tensor& dweights) const;
  void queue(const kernels::ExpertRows& own, const Kept& kept,
             std::span<const GradientTarget> gradients, std::vector<WeightProduct>& products) const;

 private:
  // The rows that this rank's experts work on.
  kernels::ExpertRuns runs(const kernels::ExpertRows& own, const Kept& kept) const;
  void backward_product(const Context& context, const kernels::ExpertRuns& held,
                        const Kept& kept) const;
  int num_results() const;  // that are added up for a row
  Tensor used(const kernels::ExpertRuns& held, const Tensor& tensor) const {
    return tensor.row_range(0, held.num_rows());
  }

  DType dtype_, compute_;
  std::int64_t hidden_, inner_;
  kernels::Activation activation_;
  ExpertShare share_;
  ExpertLinears up_, down_;
  struct {
    std::size_t arrived = 0, gate_up = 0, product = 0;
  } stash_;
};

}  // namespace ptrain::layers
