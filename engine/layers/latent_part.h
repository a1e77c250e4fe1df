#pragma once

#include <memory>
#include <optional>

#include "engine/kernels/rotary.h"
#include "engine/layers/context_attention.h"
#include "engine/layers/linear.h"
#include "engine/layers/norm.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

// A block's latent attention, with the calls of AttentionPart: queries come from a narrow latent or
// from the stream itself, keys and values from another latent, and one key with positions serves
// all heads. It is copied to each of them, so that attention finds a key as wide as a query: a
// stash and scratch of heads * rope_dim elements a token more than need be.
class LatentPart {
 public:
  LatentPart(const model::Architecture& architecture, const model::LayerSpec& spec,
             std::shared_ptr<const kernels::RotaryTable> rotary);

  // Latents before and after their norms; key_value_down has the shared key behind its latent. qkv:
  // after positions. The rest is backward's: gradients as products read them.
  struct Kept {
    Tensor query_down, query_latent, query_scale;
    Tensor key_value_down, key_value_latent, key_value_scale;
    Tensor qkv, attention, log_sum_exp;
    Tensor dquery, dquery_down, dkey_value, dkey_value_down;
  };
  Kept kept(Workspace& work) const;
  // Room for the gradients that products read, in `scratch`.
  void prepare_backward(const Context& context, Kept& kept, std::vector<Buffer>& scratch) const;

  void project(const Context& context, const Tensor& normed, const Kept& kept) const;
  Task attend(const Context& context, const Kept& kept) const;
  void remake(const Context& context, const Kept& kept) const;
  Task backward(const Context& context, std::span<const GradientTarget> gradients, const Kept& kept,
                const Tensor& dattention, const Tensor& dnormed) const;
  void queue(const Tensor& normed, const Kept& kept, std::span<const GradientTarget> gradients,
             std::vector<WeightProduct>& products) const;
  void turn(const Context& context, const Tensor& qkv, kernels::Turn turn) const;

 private:
  // Where queries have a latent.
  struct QueryLatent {
    Linears down;
    HeadNorm norm;
    std::size_t down_stash, latent, scale;
  };
  Tensor key(const Tensor& qkv, std::int64_t head) const {
    return qkv.columns(shape_.query_cols() + head * latent_.head_dim(), latent_.head_dim());
  }
  Tensor value(const Tensor& qkv, std::int64_t head) const {
    return qkv.columns(shape_.first_value() + head * latent_.value_dim, latent_.value_dim);
  }
  // Of a head in what the latent of keys and values is multiplied to.
  Tensor expanded_key(const Tensor& expanded, std::int64_t head) const;
  Tensor expanded_value(const Tensor& expanded, std::int64_t head) const;
  Tensor latent_of(const Tensor& down) const { return down.columns(0, latent_.key_value_rank); }
  Tensor shared_key(const Tensor& down) const {
    return down.columns(latent_.key_value_rank, latent_.rope_dim);
  }
  void norm_latents(const Context& context, const Kept& kept) const;
  void spread(const Tensor& expanded, const Tensor& shared, const Tensor& qkv) const;
  void gather(const Tensor& qkv, const Kept& kept) const;
  void backward_keys_and_values(const Context& context, std::span<const GradientTarget> gradients,
                                const Kept& kept, const Tensor& dnormed) const;
  void backward_queries(const Context& context, std::span<const GradientTarget> gradients,
                        const Kept& kept, const Tensor& dnormed) const;

  DType dtype_, compute_;
  std::int64_t hidden_;
  model::LatentSpec latent_;
  kernels::AttentionShape shape_;
  ContextAttention attention_;
  std::shared_ptr<const kernels::RotaryTable> rotary_;
  std::optional<QueryLatent> query_latent_;
  Linears query_, key_value_down_, key_value_up_;
  HeadNorm key_value_norm_;
  struct {
    std::size_t key_value_down, key_value_latent, key_value_scale, qkv, attention, log_sum_exp;
  } stash_;
};

}  // namespace ptrain::layers
