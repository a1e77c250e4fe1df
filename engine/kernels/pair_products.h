#pragma once

#include <cstdint>

#include "core/base/divide.h"
#include "core/program/block_sizes.h"
#include "engine/base/tensor.h"
#include "engine/kernels/pair_words.h"

// Products of small matrices in float32 whose numbers are rounded to pairs of bfloat16 and whose
// sums are float32. What lies on the right is packed once, for all that is multiplied with it. On
// processors with has_own_products().
namespace ptrain::kernels {

inline constexpr std::int64_t kPairBlock = program::kScoreRows;  // rows that are packed at a time
inline constexpr std::int64_t kBlockPairs = kPairBlock / 2;
// Rows that tiles read of a left operand of kPairBlock rows.
inline constexpr std::int64_t kLeftRows = program::kLeftRows;

// Panels of kTileCols columns, the last of kNarrowCols where these hold the rest; a panel has the
// pairs of all its columns for one place along the sum after those for the place before.
struct RightOperand {
  const Word* words;
  std::int64_t num_pairs;  // along the sum
};
constexpr std::int64_t words_of_operand(std::int64_t num_pairs, std::int64_t cols) {
  return num_pairs * round_up(cols, program::kPairPadding);
}

// To multiply with the transpose of `from`, of at most kPairBlock rows: cols / 2 pairs.
void pack_transposed(const FloatRows& from, Word* to);
// To multiply with `from`, of at most kPairBlock rows, which become kBlockPairs pairs from
// `first_pair` on of an operand of num_pairs.
void pack_pairs(const FloatRows& from, std::int64_t first_pair, std::int64_t num_pairs, Word* to);

// c (+)= a b over pairs [begin, end) of b, of which a has the first where its words begin; c in
// float32.
struct PairSum {
  std::int64_t begin, end;
  bool accumulate;
};
void multiply_pairs(const RowWords& a, const RightOperand& b, const PairSum& sum, const Tensor& c);

}  // namespace ptrain::kernels
