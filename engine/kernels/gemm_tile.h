#pragma once

#include <cstdint>

namespace ptrain::kernels {

// The bits of a float, or of two bfloat16 that are neighbours along k, the first in the lower half.
using Word = std::uint32_t __attribute__((may_alias));

inline constexpr std::int64_t kTileRows = 6;   // of c: 24 of the 32 vector registers hold its sums,
inline constexpr std::int64_t kTileCols = 64;  // four a row of b
// For products of few columns: two registers a row of b.
inline constexpr std::int64_t kNarrowRows = 12, kNarrowCols = 32;

// Word p of row r is data[r * row + p * next].
struct RowWords {
  const Word* data;
  std::int64_t row, next;
};

struct Tile {
  float* data;
  std::int64_t stride, rows, cols;  // at most those of the tile are stored
  bool accumulate;
};

bool has_tile_units();    // AVX-512 with products of bfloat16, which tiles are made for
bool is_made_by_intel();  // the processor
// What works with these units does where a build has none.
[[noreturn]] void refuse_tiles();

// c (+)= a b over num_words words: kTileRows rows of a, and kTileCols words of b one after the
// other for each place along k. Words hold floats, or pairs of bfloat16.
void multiply_float_tile(RowWords a, const Word* b, std::int64_t num_words, const Tile& c);
void multiply_pair_tile(RowWords a, const Word* b, std::int64_t num_words, const Tile& c);
// kNarrowRows rows of a, and kNarrowCols words of b for each place.
void multiply_narrow_pair_tile(RowWords a, const Word* b, std::int64_t num_words, const Tile& c);

}  // namespace ptrain::kernels
