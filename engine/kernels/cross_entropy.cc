#include "engine/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

template <class T>
void part_row(T* logits, std::int64_t size, std::int64_t target, double* statistics) {
  if (size == 0) {
    statistics[0] = -std::numeric_limits<double>::infinity();
    statistics[1] = statistics[2] = 0;
    return;
  }
  statistics[2] = target >= 0 ? static_cast<double>(logits[target]) : 0;
  T largest, sum;
  exponential_row(ExponentialRow<T>{logits, size, &largest, &sum});
  statistics[0] = largest;
  statistics[1] = sum;
}

// Of one row: what all parts know together, and what the exponentials of one are multiplied by to
// be probabilities.
struct Joined {
  double loss, factor;
};

Joined join_parts(const Tensor& statistics, std::int64_t rows, std::int64_t row, int part) {
  const auto of_part = [&](std::int64_t p) {
    return statistics.as<double>() + (p * rows + row) * statistics.stride;
  };
  const std::int64_t parts = statistics.rows / rows;
  double largest = *of_part(0), sum = 0, target = 0;
  for (std::int64_t p = 1; p < parts; ++p) largest = std::max(largest, *of_part(p));
  for (std::int64_t p = 0; p < parts; ++p) {
    sum += of_part(p)[1] * std::exp(of_part(p)[0] - largest);
    target += of_part(p)[2];
  }
  return {std::log(sum) + largest - target, std::exp(*of_part(part) - largest) / sum};
}

template <class T>
void part_gradient(T* exponentials, std::int64_t size, std::int64_t target, double factor) {
  scale_row(ScaleRow<T>{exponentials, size, static_cast<T>(factor)});
  if (target >= 0) exponentials[target] -= T{1};
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

void part_exponentials(const Tensor& logits, std::span<const std::int32_t> own_targets,
                       const Tensor& statistics) {
  PT_CHECK(statistics.dtype == DType::kFloat64 && statistics.rows == logits.rows &&
           static_cast<std::int64_t>(own_targets.size()) == logits.rows);
  dispatch(logits.dtype, [&]<class T>(T) {
    for (std::int64_t r = 0; r < logits.rows; ++r) {
      const std::int64_t target = own_targets[static_cast<std::size_t>(r)];
      PT_CHECK(target < logits.cols);
      part_row(logits.as<T>() + r * logits.stride, logits.cols, target,
               statistics.as<double>() + r * statistics.stride);
    }
  });
}

double part_cross_entropy(const Tensor& logits, const PartTargets& targets,
                          const Tensor& statistics, LogitsUse use) {
  PT_CHECK(statistics.dtype == DType::kFloat64 && statistics.rows % logits.rows == 0);
  double loss = 0;
  dispatch(logits.dtype, [&]<class T>(T) {
    for (std::int64_t r = 0; r < logits.rows; ++r) {
      const auto row = static_cast<std::size_t>(r);
      T* values = logits.as<T>() + r * logits.stride;
      if (targets.whole[row] < 0) {
        if (use == LogitsUse::kGradient) std::fill_n(values, logits.cols, T{0});
        continue;
      }
      const Joined joined = join_parts(statistics, logits.rows, r, targets.part);
      loss += joined.loss;
      if (use == LogitsUse::kGradient)
        part_gradient(values, logits.cols, targets.own[row], joined.factor);
    }
  });
  return loss;
}

}  // namespace ptrain::kernels
