#include "engine/kernels/pair_words.h"

#include <algorithm>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

#define PT_UNITS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace ptrain::kernels {

namespace {

__mmask16 first_of(std::int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<std::int64_t>(count, 0, 16)) - 1);
}

}  // namespace

PT_UNITS void pair_columns(const FloatRows& from, std::int64_t words, Word* to) {
  for (std::int64_t r = 0; r < from.rows; ++r)
    for (std::int64_t c = 0; c < from.cols; c += 16) {
      const std::int64_t left = from.cols - c;
      const __m512 numbers = _mm512_maskz_loadu_ps(first_of(left), from.data + r * from.stride + c);
      const auto rounded = (__m256i)_mm512_cvtneps_pbh(numbers);
      _mm256_mask_storeu_epi16(to + r * words + c / 2, first_of(left), rounded);
    }
}

PT_UNITS void pair_rows(const FloatRows& from, std::int64_t pairs, std::int64_t width, Word* to) {
  const __m512i zipped =
      _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                       21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  for (std::int64_t p = 0; p < pairs; ++p, to += width)
    for (std::int64_t c = 0; c < width; c += 16) {
      const __mmask16 there = first_of(from.cols - c);
      const float* low = from.data + 2 * p * from.stride + c;
      const __m512 lows = _mm512_maskz_loadu_ps(2 * p < from.rows ? there : 0, low);
      const __m512 highs =
          _mm512_maskz_loadu_ps(2 * p + 1 < from.rows ? there : 0, low + from.stride);
      const auto rounded = (__m512i)_mm512_cvtne2ps_pbh(highs, lows);
      _mm512_storeu_si512(to + c, _mm512_permutexvar_epi16(zipped, rounded));
    }
}

}  // namespace ptrain::kernels

#else

namespace ptrain::kernels {

void pair_columns(const FloatRows&, std::int64_t, Word*) { refuse_tiles(); }
void pair_rows(const FloatRows&, std::int64_t, std::int64_t, Word*) { refuse_tiles(); }

}  // namespace ptrain::kernels

#endif
