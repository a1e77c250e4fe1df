#include "engine/layers/latent_part.h"

#include <algorithm>

#include "engine/base/planted.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/rows.h"

namespace ptrain::layers {
namespace {

using model::Role;

// Of the norms of latents, whatever the model's other norms have (transformers).
constexpr double kLatentEps = 1e-6;

kernels::AttentionShape shape_of(const model::Architecture& architecture,
                                 const model::LayerSpec& spec) {
  const model::LatentSpec& latent = architecture.decoder.latent;
  kernels::AttentionShape shape;
  shape.num_heads = shape.num_kv_heads = architecture.config.num_attention_heads;
  shape.head_dim = latent.head_dim();
  shape.value_dim = latent.value_dim;
  shape.scalar = architecture.decoder.attention_scalar;
  shape.window = architecture.decoder.layers[static_cast<std::size_t>(spec.index - 1)].window;
  shape.products = spec.compute_dtype;
  return shape;
}

}  // namespace

LatentPart::LatentPart(const model::Architecture& architecture, const model::LayerSpec& spec,
                       std::shared_ptr<const kernels::RotaryTable> rotary)
    : dtype_(architecture.dtype),
      compute_(spec.compute_dtype),
      hidden_(architecture.config.hidden_size),
      latent_(architecture.decoder.latent),
      shape_(shape_of(architecture, spec)),
      attention_(architecture, shape_),
      rotary_(std::move(rotary)),
      query_(Places(architecture, spec), Role::kQuery, Role::kQueryBias, 1),
      key_value_down_(Places(architecture, spec), Role::kKeyValueDown, Role::kQueryBias, 1),
      key_value_up_(Places(architecture, spec), Role::kKeyValueUp, Role::kQueryBias, 1),
      key_value_norm_(kLatentEps, Places(architecture, spec).parameter(Role::kKeyValueDownNorm)) {
  const Places places(architecture, spec);
  stash_ = {places.stash("key_value_down"),
            places.stash("key_value_latent"),
            places.stash("key_value_latent_scale"),
            places.stash("qkv"),
            places.stash("attention"),
            places.stash("log_sum_exp")};
  if (latent_.query_rank == 0) return;
  query_latent_.emplace(QueryLatent{Linears(places, Role::kQueryDown, Role::kQueryBias, 1),
                                    HeadNorm(kLatentEps, places.parameter(Role::kQueryDownNorm)),
                                    places.stash("query_down"), places.stash("query_latent"),
                                    places.stash("query_latent_scale")});
}

LatentPart::Kept LatentPart::kept(Workspace& work) const {
  Kept kept;
  if (query_latent_) {
    kept.query_down = work.stash_or_scratch(query_latent_->down_stash, latent_.query_rank);
    kept.query_latent = work.stash_or_scratch(query_latent_->latent, latent_.query_rank, compute_);
    kept.query_scale = work.stash_or_scratch(query_latent_->scale, 1);
  }
  const std::int64_t rank = latent_.key_value_rank;
  kept.key_value_down = work.stash_or_scratch(stash_.key_value_down, rank + latent_.rope_dim);
  kept.key_value_latent = work.stash_or_scratch(stash_.key_value_latent, rank, compute_);
  kept.key_value_scale = work.stash_or_scratch(stash_.key_value_scale, 1);
  kept.qkv = work.stash_or_scratch(stash_.qkv, shape_.qkv_cols());
  kept.attention = work.stash_or_scratch(stash_.attention, shape_.output_cols(), compute_);
  kept.log_sum_exp = work.stash_or_scratch(stash_.log_sum_exp, shape_.num_heads);
  return kept;
}

void LatentPart::prepare_backward(const Context& context, Kept& kept,
                                  std::vector<Buffer>& scratch) const {
  const auto take = [&](std::int64_t cols) {
    return take_scratch(context.arena, compute_, kept.qkv.rows, cols, scratch);
  };
  kept.dquery = compute_ == dtype_ ? shape_.queries(kept.qkv) : take(shape_.query_cols());
  if (query_latent_) kept.dquery_down = take(latent_.query_rank);
  kept.dkey_value = take(shape_.num_heads * (latent_.nope_dim + latent_.value_dim));
  kept.dkey_value_down = take(latent_.key_value_rank + latent_.rope_dim);
}

Tensor LatentPart::expanded_key(const Tensor& expanded, std::int64_t head) const {
  return expanded.columns(head * (latent_.nope_dim + latent_.value_dim), latent_.nope_dim);
}

Tensor LatentPart::expanded_value(const Tensor& expanded, std::int64_t head) const {
  return expanded.columns(head * (latent_.nope_dim + latent_.value_dim) + latent_.nope_dim,
                          latent_.value_dim);
}

void LatentPart::project(const Context& context, const Tensor& normed, const Kept& kept) const {
  if (query_latent_) query_latent_->down.forward(context, normed, kept.query_down);
  key_value_down_.forward(context, normed, kept.key_value_down);
  norm_latents(context, kept);
  query_.forward(context, query_latent_ ? kept.query_latent : normed, shape_.queries(kept.qkv));
  std::vector<Buffer> buffers;
  const Tensor expanded =
      take_scratch(context.arena, dtype_, normed.rows,
                   shape_.num_heads * (latent_.nope_dim + latent_.value_dim), buffers);
  key_value_up_.forward(context, kept.key_value_latent, expanded);
  spread(expanded, shared_key(kept.key_value_down), kept.qkv);
}

void LatentPart::norm_latents(const Context& context, const Kept& kept) const {
  if (query_latent_)
    query_latent_->norm.forward(context, kept.query_down, kept.query_latent, kept.query_scale);
  key_value_norm_.forward(context, latent_of(kept.key_value_down), kept.key_value_latent,
                          kept.key_value_scale);
}

// Keys and values of every head into qkv; the shared key into each.
void LatentPart::spread(const Tensor& expanded, const Tensor& shared, const Tensor& qkv) const {
  for (std::int64_t head = 0; head < shape_.num_heads; ++head) {
    const Tensor key_of_head = key(qkv, head);
    kernels::convert(expanded_key(expanded, head), key_of_head.columns(0, latent_.nope_dim));
    kernels::convert(shared, key_of_head.columns(latent_.nope_dim, latent_.rope_dim));
    kernels::convert(expanded_value(expanded, head), value(qkv, head));
  }
}

Task LatentPart::attend(const Context& context, const Kept& kept) const {
  turn(context, kept.qkv, kernels::Turn::kForward);
  std::vector<Buffer> buffers;
  const Tensor output = itself_or_room(kept.attention, dtype_, context.arena, buffers);
  co_await attention_.forward(context, kept.qkv, output, kept.log_sum_exp);
  copy_tensor(output, kept.attention);
}

void LatentPart::remake(const Context& context, const Kept& kept) const {
  norm_latents(context, kept);
}

void LatentPart::turn(const Context& context, const Tensor& qkv, kernels::Turn turn) const {
  const auto& positions = context.batch.positions;
  const std::int32_t last = positions.empty() ? 0 : *std::ranges::max_element(positions);
  const auto angles = rotary_->angles(std::int64_t{last} + 1);
  for (std::int64_t head = 0; head < 2 * shape_.num_heads; ++head)
    kernels::rotate_neighbours(
        *angles, positions,
        qkv.columns(head * latent_.head_dim() + latent_.nope_dim, latent_.rope_dim), turn);
}

Task LatentPart::backward(const Context& context, std::span<const GradientTarget> gradients,
                          const Kept& kept, const Tensor& dattention, const Tensor& dnormed) const {
  {
    std::vector<Buffer> buffers;
    const Tensor output = itself_or_room(kept.attention, dtype_, context.arena, buffers);
    copy_tensor(kept.attention, output);
    const kernels::AttentionGradient in{output, kept.log_sum_exp, dattention};
    co_await attention_.backward(context, in, kept.qkv);
  }
  turn(context, kept.qkv, kernels::Turn::kBack);
  gather(kept.qkv, kept);
  backward_keys_and_values(context, gradients, kept, dnormed);
  backward_queries(context, gradients, kept, dnormed);
}

// The gradients of spread's inputs, and of queries, in the dtype of products. The shared key's is
// the sum over heads, made in the first one's place.
void LatentPart::gather(const Tensor& qkv, const Kept& kept) const {
  if (kept.dquery.data != qkv.data) kernels::convert(shape_.queries(qkv), kept.dquery);
  const Tensor shared = key(qkv, 0).columns(latent_.nope_dim, latent_.rope_dim);
  for (std::int64_t head = 0; head < shape_.num_heads; ++head) {
    const Tensor key_of_head = key(qkv, head);
    kernels::convert(key_of_head.columns(0, latent_.nope_dim), expanded_key(kept.dkey_value, head));
    if (head > 0 && !planted(Bug::kSharedKeyLost))
      kernels::add(key_of_head.columns(latent_.nope_dim, latent_.rope_dim), shared);
    kernels::convert(value(qkv, head), expanded_value(kept.dkey_value, head));
  }
  kernels::convert(shared, shared_key(kept.dkey_value_down));
}

void LatentPart::backward_keys_and_values(const Context& context,
                                          std::span<const GradientTarget> gradients,
                                          const Kept& kept, const Tensor& dnormed) const {
  std::vector<Buffer> buffers;
  const Tensor dlatent =
      take_scratch(context.arena, dtype_, kept.qkv.rows, latent_.key_value_rank, buffers);
  key_value_up_.backward(context, gradients, kept.dkey_value, dlatent);
  key_value_norm_.backward(context, gradients, latent_of(kept.key_value_down), kept.key_value_scale,
                           dlatent);
  kernels::convert(dlatent, latent_of(kept.dkey_value_down));
  key_value_down_.backward(context, gradients, kept.dkey_value_down, dnormed);
}

// Added to dnormed.
void LatentPart::backward_queries(const Context& context, std::span<const GradientTarget> gradients,
                                  const Kept& kept, const Tensor& dnormed) const {
  std::vector<Buffer> buffers;
  const Tensor more = take_scratch(context.arena, dtype_, kept.qkv.rows, hidden_, buffers);
  if (query_latent_) {
    const Tensor dlatent =
        take_scratch(context.arena, dtype_, kept.qkv.rows, latent_.query_rank, buffers);
    query_.backward(context, gradients, kept.dquery, dlatent);
    query_latent_->norm.backward(context, gradients, kept.query_down, kept.query_scale, dlatent);
    kernels::convert(dlatent, kept.dquery_down);
    query_latent_->down.backward(context, gradients, kept.dquery_down, more);
  } else {
    query_.backward(context, gradients, kept.dquery, more);
  }
  kernels::add(more, dnormed);
}

void LatentPart::queue(const Tensor& normed, const Kept& kept,
                       std::span<const GradientTarget> gradients,
                       std::vector<WeightProduct>& products) const {
  key_value_up_.queue(kept.key_value_latent, kept.dkey_value, gradients, products);
  key_value_down_.queue(normed, kept.dkey_value_down, gradients, products);
  query_.queue(query_latent_ ? kept.query_latent : normed, kept.dquery, gradients, products);
  if (query_latent_) query_latent_->down.queue(normed, kept.dquery_down, gradients, products);
}

}  // namespace ptrain::layers
