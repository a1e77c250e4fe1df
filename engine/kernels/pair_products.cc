#include "engine/kernels/pair_products.h"

#include <algorithm>

#include "engine/kernels/gemm_pack.h"

namespace ptrain::kernels {

namespace {

static_assert(kPairBlock == kTileCols && program::kPairPadding == kNarrowCols);
static_assert(kLeftRows == round_up(kPairBlock, kNarrowRows) &&
              kLeftRows >= round_up(kPairBlock, kTileRows));

// f(first column, columns, width) of each panel.
template <class F>
void each_panel(std::int64_t cols, const F& f) {
  for (std::int64_t c = 0; c < cols; c += kTileCols) {
    const std::int64_t count = std::min(kTileCols, cols - c);
    f(c, count, count <= kNarrowCols ? kNarrowCols : kTileCols);
  }
}

void multiply_panel(const RowWords& a, const Word* b, std::int64_t num_pairs, const Tile& c) {
  const bool narrow = c.cols <= kNarrowCols;
  const std::int64_t tile_rows = narrow ? kNarrowRows : kTileRows;
  const auto multiply_tile = narrow ? multiply_narrow_pair_tile : multiply_pair_tile;
  for (std::int64_t i = 0; i < c.rows; i += tile_rows)
    multiply_tile(
        {a.data + i * a.row, a.row, a.next}, b, num_pairs,
        {c.data + i * c.stride, c.stride, std::min(tile_rows, c.rows - i), c.cols, c.accumulate});
}

}  // namespace

void pack_transposed(const FloatRows& from, Word* to) {
  // A few columns at a time, so that they stay in the first cache.
  constexpr std::int64_t kCols = 64;
  alignas(64) Word rows[kPairBlock * kCols / 2];
  for (std::int64_t c = 0; c < from.cols; c += kCols, to += kCols / 2 * kTileCols) {
    const std::int64_t cols = std::min(kCols, from.cols - c);
    pair_columns({from.data + c, from.stride, from.rows, cols}, cols / 2, rows);
    pack<kTileCols>(Operand<BFloat16>{reinterpret_cast<const BFloat16*>(rows), cols, 1}, from.rows,
                    cols, to);
  }
}

void pack_pairs(const FloatRows& from, std::int64_t first_pair, std::int64_t num_pairs, Word* to) {
  each_panel(from.cols, [&](std::int64_t c, std::int64_t cols, std::int64_t width) {
    pair_rows({from.data + c, from.stride, from.rows, cols}, kBlockPairs, width,
              to + c * num_pairs + first_pair * width);
  });
}

void multiply_pairs(const RowWords& a, const RightOperand& b, const PairSum& sum, const Tensor& c) {
  each_panel(c.cols, [&](std::int64_t begin, std::int64_t cols, std::int64_t width) {
    multiply_panel(a, b.words + begin * b.num_pairs + sum.begin * width, sum.end - sum.begin,
                   {c.as<float>() + begin, c.stride, c.rows, cols, sum.accumulate});
  });
}

}  // namespace ptrain::kernels
