#pragma once

#include <cstdint>

#include "engine/kernels/attention.h"

namespace ptrain::kernels {

// Queries of a piece of a document and keys of another that lies wholly before it, as where ranks
// share a document. `distance`: from the first key to the first query, in tokens.
struct Before {
  Tensor query;      // [n, heads * head_dim], after rotary
  Tensor key_value;  // [m, keys then values of all heads]
  std::int64_t distance = 0;
};

// Takes these keys into what attention has made of others: output [n, heads * value_dim] and
// log_sum_exp [n, heads] become those of all keys together.
void attention_before(const AttentionShape& shape, const Before& before, const Tensor& output,
                      const Tensor& log_sum_exp, Arena& arena);

// `in`: of all keys. The gradients are added.
void attention_before_backward(const AttentionShape& shape, const Before& before,
                               const AttentionGradient& in, const Tensor& dquery,
                               const Tensor& dkey_value, Arena& arena);

}  // namespace ptrain::kernels
