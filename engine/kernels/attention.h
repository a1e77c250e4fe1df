#pragma once

#include <cstdint>

#include "engine/base/arena.h"
#include "engine/base/tensor.h"

namespace ptrain::kernels {

// Columns of the fused buffer [T, (heads + 2 kv_heads) * head_dim]: queries, then keys, then
// values.
struct AttentionShape {
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;  // query head h reads key head h / (num_heads / num_kv_heads)
  std::int64_t head_dim = 0;
  double scalar = 0;        // scores are divided by its root; 0: head_dim
  double softcap = 0;       // c: they become c tanh(score / c); 0: they do not
  std::int64_t window = 0;  // keys that a query sees, its own the last; 0: all before it
  double root_of() const { return scalar > 0 ? scalar : static_cast<double>(head_dim); }
  std::int64_t query_cols() const { return num_heads * head_dim; }
  std::int64_t qkv_cols() const { return (num_heads + 2 * num_kv_heads) * head_dim; }
};

// Causal softmax attention inside one document, whose rows are all rows of the views. qkv as above,
// after rotary; output [n, heads * head_dim]; log_sum_exp [n, heads]: both written. Scores are held
// for a block of queries at a time, as scratch.
void attention(const AttentionShape& shape, const Tensor& qkv, const Tensor& output,
               const Tensor& log_sum_exp, Arena& arena);

struct AttentionGradient {
  Tensor output;  // as forward wrote them
  Tensor log_sum_exp;
  Tensor doutput;  // [n, heads * head_dim]
};

// qkv, as forward read it, becomes its gradient.
void attention_backward(const AttentionShape& shape, const AttentionGradient& in, const Tensor& qkv,
                        Arena& arena);

}  // namespace ptrain::kernels
