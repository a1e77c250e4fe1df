#pragma once

#include "engine/kernels/attention.h"

namespace ptrain::kernels {

// The columns of one head in keys and values, or in their gradients: keys then values of all heads.
struct KeyValue {
  Tensor key, value;
};

// Of what query head `head` attends to.
inline KeyValue key_value_of(const AttentionShape& shape, const Tensor& key_value,
                             std::int64_t head) {
  const std::int64_t kv_head = head / (shape.num_heads / shape.num_kv_heads);
  const std::int64_t values = shape.values_of_head(), keys = shape.num_kv_heads * shape.head_dim;
  return {key_value.columns(kv_head * shape.head_dim, shape.head_dim),
          key_value.columns(keys + kv_head * values, values)};
}

// The columns of one head in what attention writes.
struct HeadOutput {
  Tensor output, log_sum_exp;
};

// `output`, or its gradient.
inline Tensor head_of(const AttentionShape& shape, const Tensor& output, std::int64_t head) {
  const std::int64_t values = shape.values_of_head();
  return output.columns(head * values, values);
}

inline HeadOutput head_of(const AttentionShape& shape, const HeadOutput& all, std::int64_t head) {
  return {head_of(shape, all.output, head), all.log_sum_exp.columns(head, 1)};
}

}  // namespace ptrain::kernels
