#pragma once

#include "engine/kernels/attention_softmax.h"

namespace ptrain::kernels {

// Softmax over blocks of keys one after the other, whose probabilities are rounded to bfloat16 to
// be multiplied. Of row r, what was taken in so far, in units of 2^exponent[r], which grows to be
// above all of it: whole exponents, so that which keys come in which block changes no rounding.
struct OnlineSoftmax {
  ScoreBlock<float> block;  // becomes e^(scale * score) in these units, 0 where masked
  float* exponent;          // [rows]
  float* sums;              // [rows], of e^(scale * score), not rounded
  float* output;            // [rows, value_dim], sums of rounded ones times values
  std::int64_t output_stride;
  std::int64_t value_dim;
  float* log_sum_exp;  // one a row, `log_sum_exp_stride` apart
  std::int64_t log_sum_exp_stride;
};

// Before the first block. `goes_on`: output and log_sum_exp are what is finished of other keys.
void begin_softmax(const OnlineSoftmax& args, bool goes_on);
void add_to_softmax(const OnlineSoftmax& args);
// Behind the last block.
void finish_softmax(const OnlineSoftmax& args);

}  // namespace ptrain::kernels
