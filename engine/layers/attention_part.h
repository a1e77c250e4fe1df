#pragma once

#include <memory>
#include <optional>

#include "engine/kernels/rotary.h"
#include "engine/layers/context_attention.h"
#include "engine/layers/linear.h"
#include "engine/layers/norm.h"
#include "engine/layers/workspace.h"

namespace ptrain::layers {

// A block's attention, from its norm to what the output projection reads: queries, keys and values
// with their biases, norms of heads, positions, softmax inside every document.
class AttentionPart {
 public:
  // rotary: null where positions do not turn queries and keys.
  AttentionPart(const model::Architecture& architecture, const model::LayerSpec& spec,
                std::shared_ptr<const kernels::RotaryTable> rotary);

  // query_key: before its norm, where it has one; qkv: after norm and positions. dqkv: where
  // backward leaves the gradient as products read it; may be qkv.
  struct Kept {
    Tensor query_key, query_key_scale, qkv, attention, log_sum_exp, dqkv;
    // query_key is not kept, and qkv is: forward leaves in its place what remake() begins with.
    bool keeps_unnormed = false;
  };
  Kept kept(Workspace& work) const;
  // Room for the gradient that products read, in `scratch`.
  void prepare_backward(const Context& context, Kept& kept, std::vector<Buffer>& scratch) const {
    kept.dqkv = itself_or_room(kept.qkv, compute_, context.arena, scratch);
  }

  // queries, keys and values as they leave their matrices; then the rest.
  void project(const Context& context, const Tensor& normed, const Kept& kept) const;
  Task attend(const Context& context, const Kept& kept) const;
  // query_key again, and qkv as backward reads it.
  void remake(const Context& context, const Kept& kept) const;
  // qkv becomes its gradient; dqkv and dnormed are written.
  Task backward(const Context& context, std::span<const GradientTarget> gradients, const Kept& kept,
                const Tensor& dattention, const Tensor& dnormed) const;
  void queue(const Tensor& normed, const Kept& kept, std::span<const GradientTarget> gradients,
             std::vector<WeightProduct>& products) const;
  void turn(const Context& context, const Tensor& qkv, kernels::Turn turn) const;

 private:
  struct HeadNorms {
    HeadNorm query, key;
  };
  Tensor keys(const Tensor& tensor) const {
    return tensor.columns(shape_.query_cols(), key_cols());
  }
  // They lie side by side.
  Tensor queries_and_keys(const Tensor& tensor) const {
    return tensor.columns(0, shape_.query_cols() + key_cols());
  }
  std::int64_t key_cols() const { return shape_.num_kv_heads * shape_.head_dim; }
  void norm_heads(const Context& context, const Kept& kept) const;
  void norm_heads_backward(const Context& context, std::span<const GradientTarget> gradients,
                           const Kept& kept) const;

  DType compute_;
  kernels::AttentionShape shape_;
  ContextAttention attention_;
  std::shared_ptr<const kernels::RotaryTable> rotary_;
  Linears linears_;
  std::optional<HeadNorms> norms_;
  struct {
    std::size_t query_key = 0, query_key_scale = 0, qkv, attention, log_sum_exp;
  } stash_;
};

}  // namespace ptrain::layers
