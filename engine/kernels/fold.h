#pragma once

#include <cstdint>

#include "engine/kernels/vector.h"

namespace ptrain::kernels {

// Folds term(i), i in [0, n), with one partial result a vector lane, so that the order, and with it
// the bits, depends on n only. (An OpenMP reduction clause is undone by the clones.)
template <class T, class Fold, class Term>
PT_INLINE T fold_over(std::int64_t n, T start, const Fold& fold, const Term& term) {
  constexpr std::int64_t kLanes = 64 / sizeof(T);
  T lanes[kLanes];
  for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] = start;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] = fold(lanes[l], term(i + l));
  }
  for (std::int64_t l = 0; i < n; ++i, ++l) lanes[l] = fold(lanes[l], term(i));
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
    for (std::int64_t l = 0; l < half; ++l) lanes[l] = fold(lanes[l], lanes[l + half]);
  return lanes[0];
}

template <class T, class Term>
PT_INLINE T sum_over(std::int64_t n, const Term& term) {
  return fold_over(
      n, T{0}, [](T a, T b) { return a + b; }, term);
}

template <class T>
PT_INLINE T largest_of(const T* values, std::int64_t n) {
  return fold_over(
      n, values[0], [](T a, T b) { return b > a ? b : a; },
      [&](std::int64_t i) { return values[i]; });
}

}  // namespace ptrain::kernels
