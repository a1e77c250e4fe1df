#include "engine/kernels/gemm_tile.h"

#include "engine/base/engine_error.h"

namespace ptrain::kernels {

void refuse_tiles() { throw EngineError(ExitCode::kBug, "this build has no products of its own"); }

}  // namespace ptrain::kernels

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

#define PT_UNITS __attribute__((target("avx512f,avx512bf16")))

namespace ptrain::kernels {

namespace {

// Words that are pairs of bfloat16, or floats.
template <bool kPairs>
PT_UNITS inline __m512 add_products(__m512 sum, __m512 left, __m512 right) {
  if constexpr (kPairs) return _mm512_dpbf16_ps(sum, (__m512bh)left, (__m512bh)right);
  return _mm512_fmadd_ps(left, right, sum);
}

// Without rows and columns that c does not have.
template <int kRows, int kVectors>
PT_UNITS inline void store(const __m512 (&sums)[kRows][kVectors], const Tile& c) {
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

template <bool kPairs, int kRows, int kVectors>
PT_UNITS inline void multiply(RowWords a, const Word* b, std::int64_t num_words, const Tile& c) {
  static_assert(kRows <= 12 && kVectors <= 4);  // as loops are unrolled below
  __m512 sums[kRows][kVectors] = {};
  for (std::int64_t p = 0; p < num_words; ++p, b += kVectors * 16, a.data += a.next) {
    __m512 right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = _mm512_loadu_ps(b + v * 16);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const auto word = static_cast<int>(a.data[r * a.row]);
      const __m512 left = _mm512_castsi512_ps(_mm512_set1_epi32(word));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = add_products<kPairs>(sums[r][v], left, right[v]);
    }
  }
  store(sums, c);
}

}  // namespace

bool has_tile_units() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
}

bool is_made_by_intel() { return __builtin_cpu_is("intel"); }

void multiply_float_tile(RowWords a, const Word* b, std::int64_t num_words, const Tile& c) {
  multiply<false, kTileRows, kTileCols / 16>(a, b, num_words, c);
}

void multiply_pair_tile(RowWords a, const Word* b, std::int64_t num_words, const Tile& c) {
  multiply<true, kTileRows, kTileCols / 16>(a, b, num_words, c);
}

void multiply_narrow_pair_tile(RowWords a, const Word* b, std::int64_t num_words, const Tile& c) {
  multiply<true, kNarrowRows, kNarrowCols / 16>(a, b, num_words, c);
}

}  // namespace ptrain::kernels

#else

namespace ptrain::kernels {

bool has_tile_units() { return false; }
bool is_made_by_intel() { return false; }
void multiply_float_tile(RowWords, const Word*, std::int64_t, const Tile&) { refuse_tiles(); }
void multiply_pair_tile(RowWords, const Word*, std::int64_t, const Tile&) { refuse_tiles(); }
void multiply_narrow_pair_tile(RowWords, const Word*, std::int64_t, const Tile&) { refuse_tiles(); }

}  // namespace ptrain::kernels

#endif
