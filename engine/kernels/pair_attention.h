#pragma once

#include "engine/kernels/attention_before.h"

// Attention whose products multiply pairs of bfloat16: queries, keys, values, probabilities and
// gradients are rounded where they enter a product; scores, softmax and all sums are float32. A
// block of queries and a block of keys at a time.
namespace ptrain::kernels {

// Whether the shape asks for it and this processor has the units.
bool uses_pair_attention(const AttentionShape& shape);

// Of keys before the queries, or, where `distance` is 0, of the same tokens. Everything is float32.
// Blocks are shared out over OMP_NUM_THREADS threads; the bits are the same with any number of
// them.
struct PairOutput {
  Tensor output, log_sum_exp;
  bool accumulate;  // as attention_before; else as attention
};
void pair_attention(const AttentionShape& shape, const Before& in, const PairOutput& to,
                    Arena& arena);

struct PairGradient {
  Tensor dquery, dkey_value;
  bool accumulate;  // else written; they may then be the queries, keys and values themselves
};
void pair_attention_backward(const AttentionShape& shape, const Before& in,
                             const AttentionGradient& of, const PairGradient& to, Arena& arena);

}  // namespace ptrain::kernels
