#include "engine/layers/residual_part.h"

#include "engine/kernels/rows.h"

namespace ptrain::layers {

ResidualPart::ResidualPart(const model::Architecture& architecture, const model::LayerSpec& spec,
                           Roles roles, const std::string& stash)
    : hidden_(architecture.config.hidden_size),
      linear_(Places(architecture, spec), roles.weight, roles.bias, 1) {
  if (!architecture.decoder.norms_after) return;
  const Places places(architecture, spec);
  norm_.emplace(architecture.decoder, places, roles.norm, roles.norm_bias);
  projected_ = places.stash(stash);
  statistics_ = places.stash(stash + "_scale");
}

ResidualPart::Kept ResidualPart::kept(Workspace& work) const {
  if (!norm_) return {};
  const Tensor projected = work.stash_or_scratch(projected_, hidden_);
  return {projected, work.stash_or_scratch(statistics_, norm_->statistics_cols())};
}

void ResidualPart::forward(const Context& context, const Tensor& x, const Tensor& inner,
                           const Kept& kept, const Tensor& y) const {
  if (!norm_) {
    copy_tensor(x, y);
    return linear_.forward(context, inner, y, true);
  }
  linear_.forward(context, inner, kept.projected);
  remake(context, x, kept, y);
}

void ResidualPart::remake(const Context& context, const Tensor& x, const Kept& kept,
                          const Tensor& y) const {
  if (!norm_) return;
  norm_->forward(context, kept.projected, y, kept.statistics);
  kernels::add(x, y);
}

void ResidualPart::through_norm(const Context& context, std::span<const GradientTarget> gradients,
                                const Kept& kept, const Tensor& dy,
                                const Tensor& dprojected) const {
  if (!norm_) return copy_tensor(dy, dprojected);
  std::vector<Buffer> buffers;
  const Tensor wide = itself_or_room(dprojected, dy.dtype, context.arena, buffers);
  norm_->backward(context, gradients, {kept.projected, kept.statistics, dy, {}}, wide);
  copy_tensor(wide, dprojected);
}

void ResidualPart::backward(const Context& context, std::span<const GradientTarget> gradients,
                            const Tensor& dprojected, const Tensor& dinner) const {
  linear_.backward(context, gradients, dprojected, dinner);
}

void ResidualPart::queue(const Tensor& inner, const Tensor& dprojected,
                         std::span<const GradientTarget> gradients,
                         std::vector<WeightProduct>& products) const {
  linear_.queue(inner, dprojected, gradients, products);
}

}  // namespace ptrain::layers
