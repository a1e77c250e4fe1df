#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kernels/attention_softmax.h"
#include "engine/kernels/vector.h"

// What the kernels of a softmax do with a row of scores.
namespace ptrain::kernels {

// The keys [begin, end) that a row sees.
struct Seen {
  std::int64_t begin, end;
  bool none() const { return begin == end; }
};

template <class T>
PT_INLINE Seen seen_by(const ScoreBlock<T>& block, std::int64_t row) {
  const std::int64_t end = block.first_query + row + 1;
  const std::int64_t begin = block.window > 0 && end > block.window ? end - block.window : 0;
  return {std::min(begin, block.keys), std::min(end, block.keys)};
}

template <class T>
PT_INLINE T capped(T score, const ScoreBlock<T>& block) {
  return block.softcap * hyperbolic_tangent(score * block.scale / block.softcap);
}

// Scores -> capped ones, where there is a cap.
template <class T>
PT_INLINE void cap(const ScoreBlock<T>& block, const Seen& seen, T* scores) {
  if (block.softcap <= 0) return;
#pragma omp simd
  for (std::int64_t i = seen.begin; i < seen.end; ++i) scores[i] = capped(scores[i], block);
}

// What multiplies scores behind `cap`.
template <class T>
PT_INLINE T scale_behind_cap(const ScoreBlock<T>& block) {
  return block.softcap > 0 ? T{1} : block.scale;
}

template <class T>
PT_INLINE void clear_unseen(const ScoreBlock<T>& block, const Seen& seen, T* row) {
  for (std::int64_t i = 0; i < seen.begin; ++i) row[i] = T{0};
  for (std::int64_t i = seen.end; i < block.keys; ++i) row[i] = T{0};
}

}  // namespace ptrain::kernels
