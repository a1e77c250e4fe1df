#include "engine/layers/norm.h"

#include "engine/base/engine_error.h"
#include "engine/kernels/layer_norm.h"
#include "engine/kernels/rms_norm.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {
namespace {

double offset_of(model::NormKind kind) { return kind == model::NormKind::kRmsPlusOne ? 1 : 0; }

}  // namespace

Norm::Norm(const model::Decoder& decoder, const Places& places, model::Role weight,
           model::Role bias)
    : kind_(decoder.norm), eps_(decoder.norm_eps), weight_(places.parameter(weight)) {
  if (kind_ == model::NormKind::kLayerNorm) bias_ = places.parameter(bias);
}

std::int64_t Norm::statistics_cols() const { return kind_ == model::NormKind::kLayerNorm ? 2 : 1; }

void Norm::forward(const Context& context, const Tensor& x, const Tensor& y,
                   const Tensor& statistics) const {
  const Tensor& weight = context.parameters[weight_];
  if (kind_ == model::NormKind::kLayerNorm) {
    kernels::layer_norm(x, {weight, context.parameters[bias_]}, eps_, y, statistics);
  } else {
    kernels::rms_norm(x, {weight, offset_of(kind_)}, eps_, y, statistics);
  }
}

void Norm::backward(const Context& context, std::span<const GradientTarget> gradients,
                    const Gradient& in, const Tensor& dx) const {
  const Tensor& weight = context.parameters[weight_];
  begin_sum(gradients[weight_]);
  if (kind_ == model::NormKind::kLayerNorm) {
    begin_sum(gradients[bias_]);
    kernels::layer_norm_backward({in.x, in.statistics, weight, in.dy, in.residual}, dx,
                                 {gradients[weight_].tensor, gradients[bias_].tensor});
  } else {
    kernels::rms_norm_backward(
        {in.x, in.statistics, {weight, offset_of(kind_)}, in.dy, in.residual}, dx,
        gradients[weight_].tensor);
  }
}

HeadNorm::HeadNorm(const model::Decoder& decoder, std::size_t weight)
    : offset_(offset_of(decoder.norm)), eps_(decoder.norm_eps), weight_(weight) {}

void HeadNorm::forward(const Context& context, const Tensor& x, const Tensor& y,
                       const Tensor& scale) const {
  const Tensor& weight = context.parameters[weight_];
  PT_CHECK(x.cols == scale.cols * weight.cols);
  for (std::int64_t head = 0; head < scale.cols; ++head) {
    const std::int64_t begin = head * weight.cols;
    kernels::rms_norm(x.columns(begin, weight.cols), {weight, offset_}, eps_,
                      y.columns(begin, weight.cols), scale.columns(head, 1));
  }
}

void HeadNorm::backward(const Context& context, std::span<const GradientTarget> gradients,
                        const Tensor& x, const Tensor& scale, const Tensor& dy) const {
  const Tensor& weight = context.parameters[weight_];
  begin_sum(gradients[weight_]);
  for (std::int64_t head = 0; head < scale.cols; ++head) {
    const std::int64_t begin = head * weight.cols;
    const Tensor of_head = dy.columns(begin, weight.cols);
    kernels::rms_norm_backward(
        {x.columns(begin, weight.cols), scale.columns(head, 1), {weight, offset_}, of_head, {}},
        of_head, gradients[weight_].tensor);
  }
}

}  // namespace ptrain::layers
