#include "engine/layers/routed_experts.h"

#include "engine/base/planted.h"
#include "engine/layers/mlp_part.h"

namespace ptrain::layers {

using kernels::ExpertRows;
using kernels::ExpertRuns;
using model::Role;
using Pairs = std::vector<ExpertShare::Pair>;

RoutedExperts::RoutedExperts(const model::Architecture& architecture, const model::LayerSpec& spec)
    : dtype_(architecture.dtype),
      compute_(spec.compute_dtype),
      hidden_(architecture.config.hidden_size),
      inner_(architecture.decoder.moe.inner),
      activation_(activation_of(architecture.decoder.activation)),
      share_(architecture),
      up_(Places(architecture, spec), Role::kExpertUp, 2),
      down_(Places(architecture, spec), Role::kExpertDown, 1) {
  const Places places(architecture, spec);
  stash_.gate_up = places.stash("expert_gate_up");
  stash_.product = places.stash("expert_product");
  if (!share_.alone()) stash_.arrived = places.stash("arrived");
}

RoutedExperts::Kept RoutedExperts::kept(Workspace& work) const {
  Kept kept;
  if (!share_.alone())
    kept.arrived = work.call_stash_or_scratch(stash_.arrived, share_.num_counts(), DType::kInt32);
  kept.gate_up = work.stash_or_nothing(stash_.gate_up);
  kept.product = work.stash_or_nothing(stash_.product);
  return kept;
}

ExpertRuns RoutedExperts::runs(const ExpertRows& own, const Kept& kept) const {
  return share_.alone() ? ExpertRuns(own) : share_.runs(kept.arrived);
}

int RoutedExperts::num_results() const {
  return planted(Bug::kExpertPartsNotSummed) ? 1 : share_.num_parts();
}

Task RoutedExperts::tell(const Context&, const ExpertRows& own, const Kept& kept) const {
  if (share_.alone()) co_return;
  ExpertShare::Counts counts = ExpertShare::count(own);
  co_await exchange(share_.tell(counts, kept.arrived));
}

void RoutedExperts::take_rows(const Context& context, const ExpertRows& own, Kept& kept,
                              std::vector<Buffer>& buffers) const {
  const std::int64_t rows = runs(own, kept).num_rows();
  const auto place = [&](Tensor& tensor, std::size_t index, std::int64_t cols) {
    if (!tensor.empty()) return;
    if (context.late_stash != nullptr) tensor = context.late_stash->take(index, rows);
    if (tensor.empty()) tensor = take_scratch(context.arena, compute_, rows, cols, buffers);
  };
  place(kept.gate_up, stash_.gate_up, 2 * inner_);
  place(kept.product, stash_.product, inner_);
}

Task RoutedExperts::multiply(const Context& context, const ExpertRows& own, const Tensor& normed,
                             const Kept& kept) const {
  const ExpertRuns held = runs(own, kept);
  std::vector<Buffer> buffers;
  const Tensor inputs = take_scratch(context.arena, compute_, held.num_rows(), hidden_, buffers);
  if (share_.alone()) {
    kernels::take_rows(own, normed, inputs);
  } else {
    std::vector<Buffer> sent;
    const Tensor rows = take_scratch(context.arena, compute_, own.num_rows(), hidden_, sent);
    kernels::take_rows(own, normed, rows);
    const Pairs pairs = {{rows, inputs}};
    co_await exchange(share_.dispatch(own, kept.arrived, pairs));
  }
  up_.forward(context, held, inputs, used(held, kept.gate_up));
  remake(own, kept);
}

void RoutedExperts::remake(const ExpertRows& own, const Kept& kept) const {
  const ExpertRuns held = runs(own, kept);
  kernels::gated(activation_, used(held, kept.gate_up), used(held, kept.product));
}

Task RoutedExperts::add_output(const Context& context, const ExpertRows& own, const Kept& kept,
                               const Tensor& weights, const Tensor& y) const {
  const ExpertRuns held = runs(own, kept);
  std::vector<Buffer> buffers;
  Tensor outputs = take_scratch(context.arena, dtype_, held.num_rows(), hidden_, buffers);
  down_.forward(context, held, used(held, kept.product), outputs);
  if (!share_.alone()) {
    const Tensor back =
        take_scratch(context.arena, dtype_, share_.num_parts() * own.num_rows(), hidden_, buffers);
    const Pairs pairs = {{back, outputs}};
    co_await exchange(share_.combine(own, kept.arrived, pairs));
    outputs = back;
  }
  for (int part = 0; part < num_results(); ++part)
    kernels::add_slots(own, share_.part_of(outputs, part), weights, y);
}

Task RoutedExperts::backward(const Context& context, const ExpertRows& own, Kept& kept,
                             const Gradient& in) const {
  const ExpertRuns held = runs(own, kept);
  const auto take = [&](std::int64_t rows, DType dtype, std::int64_t cols,
                        std::vector<Buffer>& buffers) {
    return take_scratch(context.arena, dtype, rows, cols, buffers);
  };
  kept.drows = take(held.num_rows(), compute_, hidden_, in.scratch);
  kept.inputs = take(held.num_rows(), compute_, hidden_, in.scratch);
  kept.weights = take(held.num_rows(), dtype_, 1, in.buffers);
  kept.dweights = take(held.num_rows(), dtype_, 1, in.buffers);
  {
    std::vector<Buffer> sent;
    Tensor drows = kept.drows, inputs = kept.inputs, weights = kept.weights;
    if (!share_.alone()) {
      drows = take(own.num_rows(), compute_, hidden_, sent);
      inputs = take(own.num_rows(), compute_, hidden_, sent);
      weights = take(own.num_rows(), dtype_, 1, sent);
    }
    kernels::take_rows(own, in.dy, drows);
    kernels::take_rows(own, in.normed, inputs);
    kernels::take_weights(own, in.weights, weights);
    const Pairs pairs = {{drows, kept.drows}, {inputs, kept.inputs}, {weights, kept.weights}};
    if (!share_.alone()) co_await exchange(share_.dispatch(own, kept.arrived, pairs));
  }
  backward_product(context, held, kept);
}

// A choice's weight gets the product of dy with the expert's output, which is that of dproduct with
// product: the output itself is not needed again.
void RoutedExperts::backward_product(const Context& context, const ExpertRuns& held,
                                     const Kept& kept) const {
  const Tensor product = used(held, kept.product);
  std::vector<Buffer> buffers;
  const Tensor dproduct = take_scratch(context.arena, dtype_, held.num_rows(), inner_, buffers);
  down_.backward(context, held, kept.drows, dproduct);
  kernels::dot_rows(dproduct, product, kept.dweights);
  kernels::scale_rows(kept.weights, product);
  kernels::scale_rows(kept.weights, dproduct);
  kernels::gated_backward(activation_, used(held, kept.gate_up), dproduct);
}

Task RoutedExperts::add_gradients(const Context& context, const ExpertRows& own, const Kept& kept,
                                  const Tensor& dnormed, const Tensor& dweights) const {
  const ExpertRuns held = runs(own, kept);
  std::vector<Buffer> buffers;
  const auto take = [&](std::int64_t rows, std::int64_t cols) {
    return take_scratch(context.arena, dtype_, rows, cols, buffers);
  };
  Tensor dinputs = take(held.num_rows(), hidden_), dots = kept.dweights;
  up_.backward(context, held, used(held, kept.gate_up), dinputs);
  if (!share_.alone()) {
    const std::int64_t rows = share_.num_parts() * own.num_rows();
    const Tensor back = take(rows, hidden_), dots_back = take(rows, 1);
    const Pairs pairs = {{back, dinputs}, {dots_back, dots}};
    co_await exchange(share_.combine(own, kept.arrived, pairs));
    dinputs = back, dots = dots_back;
  }
  for (int part = 0; part < num_results(); ++part) {
    kernels::add_slots(own, share_.part_of(dinputs, part), Tensor(), dnormed);
    kernels::add_weights(own, share_.part_of(dots, part), dweights);
  }
}

void RoutedExperts::queue(const ExpertRows& own, const Kept& kept,
                          std::span<const GradientTarget> gradients,
                          std::vector<WeightProduct>& products) const {
  if (planted(Bug::kExpertsUntrained)) return;
  const ExpertRuns held = runs(own, kept);
  down_.queue(held, used(held, kept.product), kept.drows, gradients, products);
  up_.queue(held, kept.inputs, used(held, kept.gate_up), gradients, products);
}

}  // namespace ptrain::layers
