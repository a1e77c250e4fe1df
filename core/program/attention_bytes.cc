#include "core/program/attention_bytes.h"

#include <algorithm>

#include "core/base/divide.h"
#include "core/program/block_sizes.h"

namespace ptrain::program {
namespace {

std::int64_t padded(std::int64_t cols) { return round_up(cols, kScorePadding); }

// Of a row of a right operand of `cols` columns, and of one whose columns are rows.
std::int64_t pair_row(std::int64_t cols) { return 2 * round_up(cols, kPairPadding); }
std::int64_t pair_column(std::int64_t cols) { return 2 * cols; }

}  // namespace

std::int64_t AttentionBytes::scores(std::int64_t queries, std::int64_t keys) const {
  return std::min(kScoreRows, queries) * padded(keys) * wide;
}

// Keys across the sum, values along it.
std::int64_t AttentionBytes::pairs_forward(std::int64_t keys) const {
  if (!pairs) return 0;
  return round_up(keys, kScoreRows) * (pair_column(head_dim) + pair_row(value_dim));
}

// Keys and values across the sum, keys along it, and the gradients of scores.
std::int64_t AttentionBytes::pairs_backward(std::int64_t keys) const {
  if (!pairs) return 0;
  return round_up(keys, kScoreRows) * (pair_column(head_dim) + pair_column(value_dim) +
                                       pair_row(head_dim) + pair_column(kLeftRows));
}

std::int64_t AttentionBytes::inside(std::int64_t n) const {
  return std::max(scores(n, n), pairs_forward(n));
}

std::int64_t AttentionBytes::inside_backward(std::int64_t n) const {
  const std::int64_t gradients = n * (padded(head_dim) + padded(value_dim)) * wide;
  return std::max(2 * scores(n, n) + gradients, pairs_backward(n));
}

std::int64_t AttentionBytes::before(std::int64_t queries, std::int64_t keys) const {
  const std::int64_t part = std::min(kScoreRows, queries) * (padded(value_dim) + padded(1)) * wide;
  return std::max(scores(queries, keys) + part, pairs_forward(keys));
}

std::int64_t AttentionBytes::before_backward(std::int64_t queries, std::int64_t keys) const {
  return std::max(2 * scores(queries, keys), pairs_backward(keys));
}

}  // namespace ptrain::program
