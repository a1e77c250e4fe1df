#pragma once

#include <cstdint>

#include "engine/base/arena.h"
#include "engine/base/tensor.h"

namespace ptrain::kernels {

// Columns of the fused buffer [T, (heads + kv_heads) * head_dim + kv_heads * value_dim]: queries,
// then keys, then values.
struct AttentionShape {
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;  // query head h reads key head h / (num_heads / num_kv_heads)
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;  // of a value's head; 0: head_dim
  double scalar = 0;           // scores are divided by its root; 0: head_dim
  double softcap = 0;          // c: they become c tanh(score / c); 0: they do not
  std::int64_t window = 0;     // keys that a query sees, its own the last; 0: all before it
  // kBFloat16: products may multiply pairs of bfloat16, where the processor has units for them;
  // else they are of the dtype of what is multiplied.
  DType products = DType::kFloat32;
  double root_of() const { return scalar > 0 ? scalar : static_cast<double>(head_dim); }
  std::int64_t values_of_head() const { return value_dim > 0 ? value_dim : head_dim; }
  std::int64_t query_cols() const { return num_heads * head_dim; }
  std::int64_t output_cols() const { return num_heads * values_of_head(); }
  std::int64_t first_value() const { return (num_heads + num_kv_heads) * head_dim; }
  std::int64_t qkv_cols() const { return first_value() + num_kv_heads * values_of_head(); }
  std::int64_t key_value_cols() const { return qkv_cols() - query_cols(); }
  // Of the fused buffer; of queries also where they lie beside their keys alone.
  Tensor queries(const Tensor& qkv) const { return qkv.columns(0, query_cols()); }
  Tensor key_values(const Tensor& qkv) const { return qkv.columns(query_cols(), key_value_cols()); }
};

// Causal softmax attention inside one document, whose rows are all rows of the views. qkv as above,
// after rotary; output [n, heads * value_dim]; log_sum_exp [n, heads]: both written. Scores are
// held for a block of queries at a time, as scratch.
void attention(const AttentionShape& shape, const Tensor& qkv, const Tensor& output,
               const Tensor& log_sum_exp, Arena& arena);

struct AttentionGradient {
  Tensor output;  // as forward wrote them
  Tensor log_sum_exp;
  Tensor doutput;  // as output
};

// qkv, as forward read it, becomes its gradient.
void attention_backward(const AttentionShape& shape, const AttentionGradient& in, const Tensor& qkv,
                        Arena& arena);

}  // namespace ptrain::kernels
