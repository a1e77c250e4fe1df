#include "engine/kernels/bf16_gemm.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/base/divide.h"
#include "engine/base/bfloat16.h"
#include "engine/kernels/bf16_pack.h"
#include "engine/kernels/bf16_tile.h"
#include "engine/kernels/matmul_inner.h"

namespace ptrain::kernels {

namespace {

constexpr std::int64_t kPairs = 256;  // of k at a time: panels of b are 64 KiB, all 256 KiB, and
constexpr std::int64_t kPanels = 4;   // so stay in a core's second cache
constexpr std::int64_t kDepth = kPairs * 2;
constexpr std::int64_t kWidth = kPanels * kTileCols;

Operand operand(const Tensor& tensor, bool k_is_along_rows) {
  const auto* data = reinterpret_cast<const Element*>(tensor.as<BFloat16>());
  return k_is_along_rows ? Operand{data, tensor.stride, 1} : Operand{data, 1, tensor.stride};
}

// Rows of a tile where they lie, when each starts with whole pairs; packed otherwise.
RowPairs row_pairs(const Operand& a, std::int64_t rows, std::int64_t depth, Pair* packed) {
  const bool lies_so = rows == kTileRows && a.inner == 1 && a.outer % 2 == 0 && depth % 2 == 0 &&
                       reinterpret_cast<std::uintptr_t>(a.data) % sizeof(Pair) == 0;
  if (lies_so) return {reinterpret_cast<const Pair*>(a.data), a.outer / 2, 1};
  pack<kTileRows>(a, rows, depth, packed);
  return {packed, 1, kTileRows};
}

struct Block {
  Operand a, b;  // from its first element on
  float* c;
  std::int64_t stride, rows, cols, depth;
  bool accumulate;
};

// At most kWidth columns and kDepth elements along k.
void multiply_block(const Block& block, Pair* packed_b) {
  for (std::int64_t j = 0; j < block.cols; j += kTileCols)
    pack<kTileCols>(block.b.from(j, 0), std::min(kTileCols, block.cols - j), block.depth,
                    packed_b + j * kPairs);
  alignas(64) Pair packed_a[kTileRows * kPairs];
  for (std::int64_t i = 0; i < block.rows; i += kTileRows) {
    const std::int64_t rows = std::min(kTileRows, block.rows - i);
    const RowPairs a = row_pairs(block.a.from(i, 0), rows, block.depth, packed_a);
    for (std::int64_t j = 0; j < block.cols; j += kTileCols)
      multiply_tile(a, packed_b + j * kPairs, divide_up(block.depth, 2),
                    {block.c + i * block.stride + j, block.stride, rows,
                     std::min(kTileCols, block.cols - j), block.accumulate});
  }
}

// On one thread.
void multiply(const Block& whole) {
  // On the stack: it is much too often needed for the heap, and too little to be counted.
  alignas(64) Pair packed_b[kWidth * kPairs];
  for (std::int64_t j = 0; j < whole.cols; j += kWidth)
    for (std::int64_t k = 0; k == 0 || k < whole.depth; k += kDepth)  // an empty sum is zero
      multiply_block({whole.a.from(0, k), whole.b.from(j, k), whole.c + j, whole.stride, whole.rows,
                      std::min(kWidth, whole.cols - j), std::min(kDepth, whole.depth - k),
                      whole.accumulate || k > 0},
                     packed_b);
}

bool is_forbidden() {
  const char* most = std::getenv("MKL_ENABLE_INSTRUCTIONS");
  return most != nullptr && std::string_view(most).find("AVX512") == std::string_view::npos;
}

}  // namespace

bool uses_bf16_gemm() {
  static const bool uses = has_bf16_units() && !is_made_by_intel() && !is_forbidden();
  return uses;
}

void bf16_gemm(const Tensor& a, const Tensor& b, const Tensor& c, MatmulOptions options) {
  const std::int64_t inner = checked_inner(a, b, c, options);
  if (c.rows == 0) return;
  const Block whole{operand(a, !options.transpose_a),
                    operand(b, options.transpose_b),
                    c.as<float>(),
                    c.stride,
                    c.rows,
                    c.cols,
                    inner,
                    options.accumulate};
  const std::int64_t share =
      round_up(divide_up<std::int64_t>(c.rows, omp_get_max_threads()), kTileRows);
#pragma omp parallel for schedule(static) if (share < c.rows)
  for (std::int64_t i = 0; i < c.rows; i += share) {
    Block part = whole;
    part.a = whole.a.from(i, 0);
    part.c += i * c.stride;
    part.rows = std::min(share, c.rows - i);
    multiply(part);
  }
}

}  // namespace ptrain::kernels
