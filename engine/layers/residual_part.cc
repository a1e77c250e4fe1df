#include "engine/layers/residual_part.h"

#include "engine/base/planted.h"
#include "engine/kernels/rows.h"

namespace ptrain::layers {

ResidualPart::ResidualPart(const model::Architecture& architecture, const model::LayerSpec& spec,
                           Roles roles, const std::string& stash)
    : hidden_(architecture.config.hidden_size),
      share_(architecture),
      linear_(Places(architecture, spec), roles.weight, roles.bias, 1) {
  if (!architecture.decoder.norms_after) return;
  const Places places(architecture, spec);
  norm_.emplace(architecture.decoder, places, roles.norm, roles.norm_bias);
  projected_ = places.stash(stash);
  statistics_ = places.stash(stash + "_scale");
}

ResidualPart::Kept ResidualPart::kept(Workspace& work) const {
  if (!norm_) return {};
  const Tensor projected = work.stream_stash_or_scratch(projected_, hidden_);
  return {projected, work.stream_stash_or_scratch(statistics_, norm_->statistics_cols())};
}

Task ResidualPart::forward(const Context& context, const Tensor& x, const Tensor& inner,
                           const Kept& kept, const Tensor& y) const {
  if (!norm_ && share_.alone()) {
    copy_tensor(x, y);
    linear_.forward(context, inner, y, true);
    co_return;
  }
  co_await project(context, inner, norm_ ? kept.projected : y);
  if (norm_) {
    remake(context, x, kept, y);
  } else {
    kernels::add(x, y);
  }
}

Task ResidualPart::project(const Context& context, const Tensor& inner,
                           const Tensor& projected) const {
  if (share_.alone()) {
    linear_.forward(context, inner, projected);
    co_return;
  }
  std::vector<Buffer> buffers;
  const Tensor sum = take_scratch(context.arena, projected.dtype, inner.rows, hidden_, buffers);
  linear_.multiply(context, inner, sum);
  if (planted(Bug::kBiasOnEveryRank)) linear_.add_biases(context, sum);
  co_await exchange(share_.sum(sum));
  copy_tensor(share_.own(sum), projected);
  if (!planted(Bug::kBiasOnEveryRank)) linear_.add_biases(context, projected);
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
  linear_.input_gradient(context, dprojected, dinner);
  linear_.bias_gradients(gradients, share_.own(dprojected));
}

void ResidualPart::queue(const Tensor& inner, const Tensor& dprojected,
                         std::span<const GradientTarget> gradients,
                         std::vector<WeightProduct>& products) const {
  linear_.queue(inner, dprojected, gradients, products);
}

}  // namespace ptrain::layers
