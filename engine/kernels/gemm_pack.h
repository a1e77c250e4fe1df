#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/kernels/bf16_tile.h"

namespace ptrain::kernels {

// An operand of a product: its element of row or column `o` of the product and of place k along the
// sum is data[o * outer + k * inner].
struct Operand {
  const Element* data;
  std::int64_t outer, inner;

  Operand from(std::int64_t o, std::int64_t k) const {
    return {data + o * outer + k * inner, outer, inner};
  }
};

// Four by four pairs: to[p * width + o] is pair p of row o, whose elements lie together.
inline void transpose_pairs(const Operand& operand, std::int64_t width, Pair* to) {
  using Four = Pair __attribute__((vector_size(16)));
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

// Elements of an operand as pairs: that of places 2p and 2p + 1 of `o` at to[p * kCount + o]. What
// lies outside of `count` (at most kCount) and `depth` is zero.
template <std::int64_t kCount>
void pack(const Operand& operand, std::int64_t count, std::int64_t depth, Pair* to) {
  const bool by_fours = operand.inner == 1;
  const std::int64_t fours = by_fours ? count - count % 4 : 0, eights = depth - depth % 8;
  for (std::int64_t o = 0; o < fours; o += 4)
    for (std::int64_t k = 0; k < eights; k += 8)
      transpose_pairs(operand.from(o, k), kCount, to + k / 2 * kCount + o);
  for (std::int64_t k = 0; k < depth; k += 2, to += kCount) {
    const bool is_whole = k + 1 < depth;
    const Element* low = operand.from(0, k).data;
    const Element* high = is_whole ? low + operand.inner : low;
    const Pair mask = is_whole ? 0xffffffff : 0xffff;
    const auto pair = [&](std::int64_t at) { return (low[at] | Pair{high[at]} << 16) & mask; };
    if (count == kCount && operand.outer == 1) {  // of a known length, so that it is unrolled
      for (std::int64_t o = 0; o < kCount; ++o) to[o] = pair(o);
      continue;
    }
    for (std::int64_t o = k < eights ? fours : 0; o < count; ++o) to[o] = pair(o * operand.outer);
    std::fill(to + count, to + kCount, 0);
  }
}

}  // namespace ptrain::kernels
