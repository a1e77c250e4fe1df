#pragma once

#include <cstdint>

namespace ptrain::kernels {

// The bits of a bfloat16, and two that are neighbours along k, the first in the lower half; either
// is read where tensors hold the other or a BFloat16.
using Element = std::uint16_t __attribute__((may_alias));
using Pair = std::uint32_t __attribute__((may_alias));

inline constexpr std::int64_t kTileRows = 6;   // of c: 24 of the 32 vector registers hold its sums,
inline constexpr std::int64_t kTileCols = 64;  // four a row of b

// Pair p of row r is data[r * row + p * next].
struct RowPairs {
  const Pair* data;
  std::int64_t row, next;
};

struct Tile {
  float* data;
  std::int64_t stride, rows, cols;  // at most kTileRows and kTileCols are stored
  bool accumulate;
};

bool has_bf16_units();    // AVX512-BF16
bool is_made_by_intel();  // the processor

// c (+)= a b over num_pairs pairs, with AVX512-BF16: kTileRows rows of a, and kTileCols pairs of b
// one after the other for each place along k.
void multiply_tile(RowPairs a, const Pair* b, std::int64_t num_pairs, const Tile& c);

}  // namespace ptrain::kernels
