#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "engine/base/bfloat16.h"
#include "engine/kernels/gemm_tile.h"

namespace ptrain::kernels {

// An operand of a product, of float or BFloat16: its number of row or column `o` of the product and
// of place k along the sum is data[o * outer + k * inner].
template <class T>
struct Operand {
  const T* data;
  std::int64_t outer, inner;

  Operand from(std::int64_t o, std::int64_t k) const {
    return {data + o * outer + k * inner, outer, inner};
  }
};

template <class T>
inline constexpr std::int64_t kInWord = sizeof(Word) / sizeof(T);

// The first word of row or column `o`, of which `left` numbers are left; behind them is zero.
inline Word word(const Operand<float>& operand, std::int64_t o, std::int64_t /*left*/) {
  return std::bit_cast<Word>(operand.data[o * operand.outer]);
}

inline Word word(const Operand<BFloat16>& operand, std::int64_t o, std::int64_t left) {
  const BFloat16* low = operand.data + o * operand.outer;
  return left > 1 ? low->bits | Word{low[operand.inner].bits} << 16 : low->bits;
}

// The first words of kCount rows or columns whose numbers for one place lie together.
template <std::int64_t kCount>
void copy_words(const Operand<float>& operand, std::int64_t /*left*/, Word* to) {
  std::memcpy(to, operand.data, kCount * sizeof(Word));
}

template <std::int64_t kCount>
void copy_words(const Operand<BFloat16>& operand, std::int64_t left, Word* to) {
  using Half = std::uint16_t __attribute__((vector_size(8)));
  const Operand<BFloat16> close{operand.data, 1, operand.inner};
  const std::int64_t fours = left > 1 ? kCount - kCount % 4 : 0;
  for (std::int64_t o = 0; o < fours; o += 4) {
    Half low, high;
    std::memcpy(&low, close.from(o, 0).data, sizeof low);
    std::memcpy(&high, close.from(o, 1).data, sizeof high);
    const auto pairs = __builtin_shufflevector(low, high, 0, 4, 1, 5, 2, 6, 3, 7);
    std::memcpy(to + o, &pairs, sizeof pairs);
  }
  for (std::int64_t o = fours; o < kCount; ++o) to[o] = word(close, o, left);
}

// Four by four words: to[p * width + o] is word p of row o, whose numbers lie together.
template <class T>
void transpose_words(const Operand<T>& operand, std::int64_t width, Word* to) {
  using Four = Word __attribute__((vector_size(16)));
  Four rows[4];
  for (std::int64_t o = 0; o < 4; ++o) std::memcpy(&rows[o], operand.from(o, 0).data, sizeof(Four));
  const Four low = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Four low2 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Four high = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Four high2 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  const Four columns[4] = {__builtin_shufflevector(low, low2, 0, 1, 4, 5),
                           __builtin_shufflevector(low, low2, 2, 3, 6, 7),
                           __builtin_shufflevector(high, high2, 0, 1, 4, 5),
                           __builtin_shufflevector(high, high2, 2, 3, 6, 7)};
  for (std::int64_t p = 0; p < 4; ++p) std::memcpy(to + p * width, &columns[p], sizeof(Four));
}

// Numbers of an operand as words: word p of `o` at to[p * kCount + o]. What lies outside of `count`
// (at most kCount) and `depth` is zero.
template <std::int64_t kCount, class T>
void pack(const Operand<T>& operand, std::int64_t count, std::int64_t depth, Word* to) {
  constexpr std::int64_t kIn = kInWord<T>;
  const std::int64_t fours = operand.inner == 1 ? count - count % 4 : 0;
  const std::int64_t wholes = depth - depth % (4 * kIn);
  for (std::int64_t o = 0; o < fours; o += 4)
    for (std::int64_t k = 0; k < wholes; k += 4 * kIn)
      transpose_words(operand.from(o, k), kCount, to + k / kIn * kCount + o);
  for (std::int64_t k = 0; k < depth; k += kIn, to += kCount) {
    const auto place = operand.from(0, k);
    if (count == kCount && operand.outer == 1) {  // of a known length, so that it is unrolled
      copy_words<kCount>(place, depth - k, to);
      continue;
    }
    for (std::int64_t o = k < wholes ? fours : 0; o < count; ++o) to[o] = word(place, o, depth - k);
    std::fill(to + count, to + kCount, 0);
  }
}

}  // namespace ptrain::kernels
