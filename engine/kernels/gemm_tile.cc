#include "engine/kernels/bf16_tile.h"

#include "engine/base/engine_error.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

#define PT_BF16 __attribute__((target("avx512f,avx512bf16")))

namespace ptrain::kernels {

namespace {

constexpr int kVectors = kTileCols / 16;
static_assert(kTileRows == 6 && kVectors == 4);  // as loops are unrolled below

// Without rows and columns that c does not have.
PT_BF16 void store(const __m512 (&sums)[kTileRows][kVectors], const Tile& c) {
  for (std::int64_t r = 0; r < c.rows; ++r)
    for (std::int64_t v = 0; v * 16 < c.cols; ++v) {
      const std::int64_t left = c.cols - v * 16;
      const auto mask = static_cast<__mmask16>(left < 16 ? (1 << left) - 1 : 0xffff);
      float* to = c.data + r * c.stride + v * 16;
      __m512 sum = sums[r][v];
      if (c.accumulate) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, to));
      _mm512_mask_storeu_ps(to, mask, sum);
    }
}

}  // namespace

bool has_bf16_units() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16");
}

bool is_made_by_intel() { return __builtin_cpu_is("intel"); }

PT_BF16 void multiply_tile(RowPairs a, const Pair* b, std::int64_t num_pairs, const Tile& c) {
  __m512 sums[kTileRows][kVectors] = {};
  for (std::int64_t p = 0; p < num_pairs; ++p, b += kTileCols, a.data += a.next) {
    __m512bh right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = (__m512bh)_mm512_loadu_ps(b + v * 16);
#pragma GCC unroll 6
    for (int r = 0; r < kTileRows; ++r) {
      const auto left = (__m512bh)_mm512_set1_epi32(static_cast<int>(a.data[r * a.row]));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], left, right[v]);
    }
  }
  store(sums, c);
}

}  // namespace ptrain::kernels

#else

namespace ptrain::kernels {

bool has_bf16_units() { return false; }
bool is_made_by_intel() { return false; }

void multiply_tile(RowPairs, const Pair*, std::int64_t, const Tile&) {
  throw EngineError(ExitCode::kBug, "this build has no products of bfloat16 of its own");
}

}  // namespace ptrain::kernels

#endif
