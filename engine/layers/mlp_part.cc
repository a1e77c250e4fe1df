#include "engine/layers/mlp_part.h"

#include "engine/base/engine_error.h"

namespace ptrain::layers {
using model::Role;

kernels::Activation activation_of(recipe::Activation activation) {
  switch (activation) {
    case recipe::Activation::kSilu:
      return kernels::Activation::kSilu;
    case recipe::Activation::kGelu:
      return kernels::Activation::kGelu;
    case recipe::Activation::kGeluTanh:
      return kernels::Activation::kGeluTanh;
    case recipe::Activation::kFamily:
      break;
  }
  throw_bug(__FILE__, __LINE__, "an architecture that is complete");
}

MlpPart::MlpPart(const model::Architecture& architecture, const model::LayerSpec& spec)
    : is_gated_(architecture.decoder.gated),
      inner_(architecture.config.intermediate_size),
      compute_(spec.compute_dtype),
      activation_(activation_of(architecture.decoder.activation)),
      linears_(Places(architecture, spec), Role::kUp, Role::kUpBias, is_gated_ ? 2 : 1),
      up_(Places(architecture, spec).stash(is_gated_ ? "gate_up" : "up")),
      product_(Places(architecture, spec).stash("product")) {}

MlpPart::Kept MlpPart::kept(Workspace& work) const {
  const Tensor up = work.stash_or_scratch(up_, is_gated_ ? 2 * inner_ : inner_, compute_);
  return {up, work.stash_or_scratch(product_, inner_, compute_)};
}

void MlpPart::forward(const Context& context, const Tensor& normed, const Kept& kept) const {
  linears_.forward(context, normed, kept.up);
  remake(kept);
}

void MlpPart::remake(const Kept& kept) const {
  if (is_gated_) {
    kernels::gated(activation_, kept.up, kept.product);
  } else {
    kernels::activate(activation_, kept.up, kept.product);
  }
}

void MlpPart::backward(const Context& context, std::span<const GradientTarget> gradients,
                       const Kept& kept, const Tensor& dproduct, const Tensor& dnormed) const {
  if (is_gated_) {
    kernels::gated_backward(activation_, kept.up, dproduct);
  } else {
    kernels::activate_backward(activation_, kept.up, dproduct);
  }
  linears_.backward(context, gradients, kept.up, dnormed);
}

void MlpPart::queue(const Tensor& normed, const Kept& kept,
                    std::span<const GradientTarget> gradients,
                    std::vector<WeightProduct>& products) const {
  linears_.queue(normed, kept.up, gradients, products);
}

}  // namespace ptrain::layers
