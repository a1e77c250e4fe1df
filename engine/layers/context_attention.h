#pragma once

#include "engine/kernels/attention.h"
#include "engine/layers/head_exchange.h"
#include "engine/layers/layer.h"
#include "engine/layers/ring_attention.h"

namespace ptrain::layers {

// The rows that attention sees at a time: those of one document.
Tensor rows_of(const Tensor& tensor, const data::DocumentSpan& span);

// Attention inside the documents of a micro-batch, whose tokens a ring of groups of ulysses ranks
// may share. The exchanges are those of core/model/context_exchanges.cc, in its order.
class ContextAttention {
 public:
  ContextAttention(const model::Architecture& architecture, const kernels::AttentionShape& shape);

  const kernels::AttentionShape& shape() const { return shape_; }
  // Of the own tokens: qkv [T, ...], after positions; output, in the dtype of qkv, and log_sum_exp
  // [T, heads], as much as the own heads need, which may be of other tokens: all written.
  Task forward(const Context& context, Tensor qkv, Tensor output, Tensor log_sum_exp) const;
  // qkv, as forward read it, becomes its gradient.
  Task backward(const Context& context, kernels::AttentionGradient in, Tensor qkv) const;

 private:
  bool alone() const { return heads_.alone() && is_one_ring_rank_; }
  Tensor sums_of_heads(const Tensor& log_sum_exp) const;
  Tensor blocks(const Context& context, const Tensor& like, std::int64_t cols,
                std::vector<Buffer>& buffers) const;
  Task forward_of_heads(const Context& context, Tensor qkv, Tensor output,
                        Tensor log_sum_exp) const;
  Task backward_of_heads(const Context& context, kernels::AttentionGradient in, Tensor qkv) const;

  kernels::AttentionShape shape_;
  bool is_one_ring_rank_;
  HeadExchange heads_;
  RingAttention ring_;
};

}  // namespace ptrain::layers
