#pragma once

#include <cstdint>

// Rows that the engine's code works on at a time, and so keeps scratch for: the engine's loops and
// the bytes that are predicted of them read the same numbers.
namespace ptrain::program {

// Attention: queries whose scores are held, and what rows of scores are padded to (elements).
inline constexpr std::int64_t kScoreRows = 64, kScorePadding = 16;
// Where products are of pairs of bfloat16: what rows of right operands are padded to (elements),
// and the rows that a left operand of kScoreRows has room for.
inline constexpr std::int64_t kPairPadding = 32, kLeftRows = 72;

// Rows whose sums wait to be rounded.
inline constexpr std::int64_t kRoundedRows = 256;

// Head: tokens whose logits exist, and what their rows are padded to (elements). 128 tokens cost 5
// % of the head's matmuls at a vocabulary of 50257, and an odd vocabulary without padding a third.
inline constexpr std::int64_t kLogitsRows = 256, kLogitsPadding = 64;

// Numbers that each rank of the tensor axis shows the others of a row of logits.
inline constexpr std::int64_t kPartStatistics = 3;

}  // namespace ptrain::program
