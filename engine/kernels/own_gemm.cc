#include "engine/kernels/own_gemm.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "core/base/divide.h"
#include "engine/base/bfloat16.h"
#include "engine/kernels/gemm_pack.h"
#include "engine/kernels/gemm_tile.h"
#include "engine/kernels/matmul_inner.h"

namespace ptrain::kernels {

namespace {

constexpr std::int64_t kDepth = 256;  // words along k at a time: panels of b are 64 KiB, all 512
constexpr std::int64_t kPanels = 8;   // KiB, and so stay in a core's second cache
constexpr std::int64_t kWidth = kPanels * kTileCols;
constexpr std::int64_t kLeast = 128;  // rows and places of k; in float32 MKL is faster below
constexpr std::int64_t kRows = 8 * kTileRows;  // of a that are packed at a time

template <class T>
Operand<T> operand(const Tensor& tensor, bool k_is_along_rows) {
  const T* data = tensor.as<T>();
  return k_is_along_rows ? Operand<T>{data, tensor.stride, 1} : Operand<T>{data, 1, tensor.stride};
}

// Whether rows are whole words where they lie.
template <class T>
bool lies_in_words(const Operand<T>& a, std::int64_t depth) {
  return a.inner == 1 && a.outer % kInWord<T> == 0 && depth % kInWord<T> == 0 &&
         reinterpret_cast<std::uintptr_t>(a.data) % sizeof(Word) == 0;
}

template <class T>
RowWords words_of(const Operand<T>& lying) {
  return {reinterpret_cast<const Word*>(lying.data), lying.outer / kInWord<T>, 1};
}

// At most kRows rows, tile after tile; a few places of all tiles at a time, since numbers of
// several tiles share lines of the cache where rows lie across.
template <class T>
void pack_tiles(const Operand<T>& a, std::int64_t rows, std::int64_t depth, Word* to) {
  constexpr std::int64_t kPlaces = 16 * kInWord<T>;
  for (std::int64_t k = 0; k < depth; k += kPlaces)
    for (std::int64_t i = 0; i < rows; i += kTileRows)
      pack<kTileRows>(a.from(i, k), std::min(kTileRows, rows - i), std::min(kPlaces, depth - k),
                      to + i * kDepth + k / kInWord<T> * kTileRows);
}

template <class T>
struct Block {
  Operand<T> a, b;  // from its first number on
  float* c;
  std::int64_t stride, rows, cols, depth;
  bool accumulate;
};

// `rows` rows of a block from `begin` on, at most kRows.
template <class T>
void multiply_rows(const Block<T>& block, std::int64_t begin, std::int64_t rows,
                   const Word* packed_b) {
  constexpr auto* multiply_tile =
      std::is_same_v<T, BFloat16> ? multiply_pair_tile : multiply_float_tile;
  const Operand<T> a = block.a.from(begin, 0);
  const std::int64_t lying = lies_in_words(a, block.depth) ? rows - rows % kTileRows : 0;
  alignas(64) Word packed_a[kRows * kDepth];
  pack_tiles(a.from(lying, 0), rows - lying, block.depth, packed_a + lying * kDepth);
  for (std::int64_t i = 0; i < rows; i += kTileRows) {
    const RowWords words =
        i < lying ? words_of(a.from(i, 0)) : RowWords{packed_a + i * kDepth, 1, kTileRows};
    for (std::int64_t j = 0; j < block.cols; j += kTileCols)
      multiply_tile(
          words, packed_b + j * kDepth, divide_up(block.depth, kInWord<T>),
          {block.c + (begin + i) * block.stride + j, block.stride, std::min(kTileRows, rows - i),
           std::min(kTileCols, block.cols - j), block.accumulate});
  }
}

// At most kWidth columns and kDepth words along k.
template <class T>
void multiply_block(const Block<T>& block, Word* packed_b) {
  for (std::int64_t j = 0; j < block.cols; j += kTileCols)
    pack<kTileCols>(block.b.from(j, 0), std::min(kTileCols, block.cols - j), block.depth,
                    packed_b + j * kDepth);
  for (std::int64_t i = 0; i < block.rows; i += kRows)
    multiply_rows(block, i, std::min(kRows, block.rows - i), packed_b);
}

// On one thread.
template <class T>
void multiply(const Block<T>& whole) {
  constexpr std::int64_t kNumbers = kDepth * kInWord<T>;
  // On the stack: it is much too often needed for the heap, and too little to be counted.
  alignas(64) Word packed_b[kWidth * kDepth];
  for (std::int64_t j = 0; j < whole.cols; j += kWidth)
    for (std::int64_t k = 0; k == 0 || k < whole.depth; k += kNumbers)  // an empty sum is zero
      multiply_block<T>({whole.a.from(0, k), whole.b.from(j, k), whole.c + j, whole.stride,
                         whole.rows, std::min(kWidth, whole.cols - j),
                         std::min(kNumbers, whole.depth - k), whole.accumulate || k > 0},
                        packed_b);
}

template <class T>
void multiply(const Tensor& a, const Tensor& b, const Tensor& c, MatmulOptions options) {
  const Block<T> whole{operand<T>(a, !options.transpose_a),
                       operand<T>(b, options.transpose_b),
                       c.as<float>(),
                       c.stride,
                       c.rows,
                       c.cols,
                       checked_inner(a, b, c, options),
                       options.accumulate};
  if (c.rows == 0) return;
  const std::int64_t share =
      round_up(divide_up<std::int64_t>(c.rows, omp_get_max_threads()), kTileRows);
#pragma omp parallel for schedule(static) if (share < c.rows)
  for (std::int64_t i = 0; i < c.rows; i += share) {
    Block<T> part = whole;
    part.a = whole.a.from(i, 0);
    part.c += i * c.stride;
    part.rows = std::min(share, c.rows - i);
    multiply(part);
  }
}

bool is_forbidden() {
  const char* most = std::getenv("MKL_ENABLE_INSTRUCTIONS");
  return most != nullptr && std::string_view(most).find("AVX512") == std::string_view::npos;
}

}  // namespace

bool has_own_products() {
  static const bool has = has_tile_units() && !is_made_by_intel() && !is_forbidden();
  return has;
}

bool uses_own_gemm(const Tensor& a, const Tensor& c, MatmulOptions options) {
  if (!has_own_products() || a.dtype == DType::kFloat64) return false;
  return a.dtype == DType::kBFloat16 ||
         (c.rows >= kLeast && inner_of(a, options) >= kLeast && c.cols % kTileCols == 0);
}

void own_gemm(const Tensor& a, const Tensor& b, const Tensor& c, MatmulOptions options) {
  if (a.dtype == DType::kBFloat16) return multiply<BFloat16>(a, b, c, options);
  multiply<float>(a, b, c, options);
}

}  // namespace ptrain::kernels
