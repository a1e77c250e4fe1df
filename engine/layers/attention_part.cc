#include "engine/layers/attention_part.h"

#include <algorithm>

#include "engine/base/planted.h"

namespace ptrain::layers {
namespace {

using model::Role;

kernels::AttentionShape shape_of(const model::Architecture& architecture,
                                 const model::LayerSpec& spec) {
  const recipe::Model& config = architecture.config;
  const model::Decoder& decoder = architecture.decoder;
  return {.num_heads = config.num_attention_heads,
          .num_kv_heads = config.num_key_value_heads,
          .head_dim = config.head_dim,
          .scalar = decoder.attention_scalar,
          .softcap = decoder.attention_softcap,
          .window = decoder.layers[static_cast<std::size_t>(spec.index - 1)].window,
          .products = spec.compute_dtype};
}

}  // namespace

AttentionPart::AttentionPart(const model::Architecture& architecture, const model::LayerSpec& spec,
                             std::shared_ptr<const kernels::RotaryTable> rotary)
    : compute_(spec.compute_dtype),
      shape_(shape_of(architecture, spec)),
      attention_(architecture, shape_),
      rotary_(std::move(rotary)),
      linears_(Places(architecture, spec), Role::kQuery, Role::kQueryBias,
               architecture.decoder.names.query_key_value.empty() ? 3 : 1) {
  const Places places(architecture, spec);
  stash_.qkv = places.stash("qkv");
  stash_.attention = places.stash("attention");
  stash_.log_sum_exp = places.stash("log_sum_exp");
  if (!architecture.decoder.query_key_norm) return;
  norms_.emplace(HeadNorms{{architecture.decoder, places.parameter(Role::kQueryNorm)},
                           {architecture.decoder, places.parameter(Role::kKeyNorm)}});
  stash_.query_key = places.stash("query_key");
  stash_.query_key_scale = places.stash("query_key_scale");
}

AttentionPart::Kept AttentionPart::kept(Workspace& work) const {
  Kept kept;
  if (norms_) {
    kept.query_key = work.stash_or_scratch(stash_.query_key, shape_.query_cols() + key_cols());
    kept.query_key_scale =
        work.stash_or_scratch(stash_.query_key_scale, shape_.num_heads + shape_.num_kv_heads);
    kept.keeps_unnormed = work.keeps(stash_.qkv) && !work.keeps(stash_.query_key);
  }
  kept.qkv = work.stash_or_scratch(stash_.qkv, shape_.qkv_cols());
  kept.attention = work.stash_or_scratch(stash_.attention, shape_.query_cols(), compute_);
  kept.log_sum_exp = work.stash_or_scratch(stash_.log_sum_exp, shape_.num_heads);
  return kept;
}

void AttentionPart::project(const Context& context, const Tensor& normed, const Kept& kept) const {
  linears_.forward(context, normed, kept.qkv);
}

Task AttentionPart::attend(const Context& context, const Kept& kept) const {
  if (norms_) norm_heads(context, kept);
  turn(context, kept.qkv, kernels::Turn::kForward);
  std::vector<Buffer> buffers;
  const Tensor output = itself_or_room(kept.attention, kept.qkv.dtype, context.arena, buffers);
  co_await attention_.forward(context, kept.qkv, output, kept.log_sum_exp);
  copy_tensor(output, kept.attention);
  if (kept.keeps_unnormed && !planted(Bug::kNormedTwice))
    copy_tensor(kept.query_key, queries_and_keys(kept.qkv));
}

void AttentionPart::remake(const Context& context, const Kept& kept) const {
  if (!norms_) return;
  norm_heads(context, kept);
  turn(context, kept.qkv, kernels::Turn::kForward);
}

Task AttentionPart::backward(const Context& context, std::span<const GradientTarget> gradients,
                             const Kept& kept, const Tensor& dattention,
                             const Tensor& dnormed) const {
  std::vector<Buffer> buffers;
  const Tensor output = itself_or_room(kept.attention, kept.qkv.dtype, context.arena, buffers);
  copy_tensor(kept.attention, output);
  const kernels::AttentionGradient in{output, kept.log_sum_exp, dattention};
  co_await attention_.backward(context, in, kept.qkv);
  if (!planted(Bug::kTurnedBackLate)) turn(context, kept.qkv, kernels::Turn::kBack);
  if (norms_) norm_heads_backward(context, gradients, kept);
  if (planted(Bug::kTurnedBackLate)) turn(context, kept.qkv, kernels::Turn::kBack);
  copy_tensor(kept.qkv, kept.dqkv);
  linears_.backward(context, gradients, kept.dqkv, dnormed);
}

void AttentionPart::queue(const Tensor& normed, const Kept& kept,
                          std::span<const GradientTarget> gradients,
                          std::vector<WeightProduct>& products) const {
  linears_.queue(normed, kept.dqkv, gradients, products);
}

void AttentionPart::turn(const Context& context, const Tensor& qkv, kernels::Turn turn) const {
  if (rotary_ == nullptr) return;
  const auto& positions = context.batch.positions;
  const std::int32_t last = positions.empty() ? 0 : *std::ranges::max_element(positions);
  kernels::rotate(*rotary_->angles(std::int64_t{last} + 1), positions, queries_and_keys(qkv), turn);
}

void AttentionPart::norm_heads(const Context& context, const Kept& kept) const {
  copy_tensor(queries_and_keys(kept.qkv), kept.query_key);
  const Tensor& scale = kept.query_key_scale;
  norms_->query.forward(context, shape_.queries(kept.query_key), shape_.queries(kept.qkv),
                        scale.columns(0, shape_.num_heads));
  norms_->key.forward(context, keys(kept.query_key), keys(kept.qkv),
                      scale.columns(shape_.num_heads, shape_.num_kv_heads));
}

void AttentionPart::norm_heads_backward(const Context& context,
                                        std::span<const GradientTarget> gradients,
                                        const Kept& kept) const {
  const Tensor& scale = kept.query_key_scale;
  norms_->query.backward(context, gradients, shape_.queries(kept.query_key),
                         scale.columns(0, shape_.num_heads), shape_.queries(kept.qkv));
  norms_->key.backward(context, gradients, keys(kept.query_key),
                       scale.columns(shape_.num_heads, shape_.num_kv_heads), keys(kept.qkv));
}

}  // namespace ptrain::layers
