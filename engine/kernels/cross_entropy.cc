#include "engine/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/kernels/fold.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

// logits -> e^(logits - largest); `largest` and their sum are written.
template <class T>
struct ExponentialRow {
  T* logits;
  std::int64_t size;
  T* largest;
  T* sum;
};

template <class T>
PT_INLINE void exponential_row_body(const ExponentialRow<T>& row) {
  const T largest = largest_of(row.logits, row.size);
  *row.largest = largest;
  *row.sum = sum_over<T>(row.size, [&](std::int64_t i) {
    return row.logits[i] = exponential(row.logits[i] - largest);
  });
}
PT_KERNEL(exponential_row, ExponentialRow)

template <class T>
struct ScaleRow {
  T* values;
  std::int64_t size;
  T factor;
};

template <class T>
PT_INLINE void scale_row_body(const ScaleRow<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) row.values[i] *= row.factor;
}
PT_KERNEL(scale_row, ScaleRow)

template <class T>
double row_loss(T* logits, std::int64_t size, std::int64_t target, LogitsUse use) {
  PT_CHECK(target < size);
  const double target_logit = logits[target];
  T largest, sum;
  exponential_row(ExponentialRow<T>{logits, size, &largest, &sum});
  if (use == LogitsUse::kGradient) {
    scale_row(ScaleRow<T>{logits, size, T{1} / sum});
    logits[target] -= T{1};
  }
  return std::log(static_cast<double>(sum)) + static_cast<double>(largest) - target_logit;
}

}  // namespace

double cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, LogitsUse use) {
  PT_CHECK(static_cast<std::int64_t>(targets.size()) == logits.rows);
  double loss = 0;
  dispatch(logits.dtype, [&]<class T>(T) {
    for (std::int64_t r = 0; r < logits.rows; ++r) {
      T* row = logits.as<T>() + r * logits.stride;
      const std::int64_t target = targets[static_cast<std::size_t>(r)];
      if (target >= 0) {
        loss += row_loss(row, logits.cols, target, use);
      } else if (use == LogitsUse::kGradient) {
        std::fill_n(row, logits.cols, T{0});
      }
    }
  });
  return loss;
}

}  // namespace ptrain::kernels
