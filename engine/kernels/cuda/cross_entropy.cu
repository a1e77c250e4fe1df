#include <algorithm>
#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/kernels/cross_entropy.h"
#include "engine/kernels/cuda/total.h"

namespace ptrain::kernels {
namespace {

// One row: its loss, and in place of its logits their gradient.
template <class T>
struct RowLoss {
  View<T> logits;
  std::int64_t size;
  const std::int32_t* targets;
  double* losses;
  bool wants_gradient;

  PT_DEVICE void operator()(const Block& block) const {
    const std::int64_t row = block.index(), target = targets[row];
    T* values = &logits(row, 0);
    if (target < 0) {
      if (wants_gradient) block.each(size, [&](std::int64_t i) { values[i] = T{0}; });
      return block.each(1, [&](std::int64_t) { losses[row] = 0; });
    }
    const T largest = largest_of<T>(block, size, [&](std::int64_t i) { return values[i]; });
    const T sum =
        sum_over<T>(block, size, [&](std::int64_t i) { return std::exp(values[i] - largest); });
    block.each(1, [&](std::int64_t) {
      losses[row] = std::log(static_cast<double>(sum)) + static_cast<double>(largest) -
                    static_cast<double>(values[target]);
    });
    if (!wants_gradient) return;
    block.each(size, [&](std::int64_t i) {
      values[i] = std::exp(values[i] - largest) / sum - (i == target ? T{1} : T{0});
    });
  }
};

// One row of a part: its statistics, and exponentials in place of its logits.
template <class T>
struct PartRow {
  View<T> logits;
  std::int64_t size;
  const std::int32_t* targets;
  View<double> statistics;

  PT_DEVICE void operator()(const Block& block) const {
    const std::int64_t row = block.index(), target = targets[row];
    T* values = &logits(row, 0);
    const T largest = largest_of<T>(block, size, [&](std::int64_t i) { return values[i]; });
    const T sum =
        sum_over<T>(block, size, [&](std::int64_t i) { return std::exp(values[i] - largest); });
    block.each(1, [&](std::int64_t) {
      statistics(row, 0) = static_cast<double>(largest);
      statistics(row, 1) = size > 0 ? static_cast<double>(sum) : 0;
      statistics(row, 2) = target >= 0 ? static_cast<double>(values[target]) : 0;
    });
    block.each(size, [&](std::int64_t i) { values[i] = std::exp(values[i] - largest); });
  }
};

// One row, from the statistics of all parts.
template <class T>
struct PartLoss {
  View<T> exponentials;
  std::int64_t size, rows, parts, part;
  const std::int32_t *targets, *own;
  View<double> statistics;
  double* losses;
  bool wants_gradient;

  PT_DEVICE void operator()(const Block& block) const {
    const std::int64_t row = block.index(), target = own[row];
    const bool counts = targets[row] >= 0;
    double largest = statistics(row, 0), sum = 0, logit = 0;
    for (std::int64_t p = 1; p < parts; ++p)
      largest = std::max(largest, statistics(p * rows + row, 0));
    for (std::int64_t p = 0; p < parts; ++p) {
      sum += statistics(p * rows + row, 1) * std::exp(statistics(p * rows + row, 0) - largest);
      logit += statistics(p * rows + row, 2);
    }
    block.each(1,
               [&](std::int64_t) { losses[row] = counts ? std::log(sum) + largest - logit : 0; });
    if (!wants_gradient) return;
    const double factor = counts ? std::exp(statistics(part * rows + row, 0) - largest) / sum : 0;
    block.each(size, [&](std::int64_t i) {
      const T probability = exponentials(row, i) * static_cast<T>(factor);
      exponentials(row, i) = probability - (i == target ? T{1} : T{0});
    });
  }
};

}  // namespace

double cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, LogitsUse use) {
  PT_CHECK(static_cast<std::int64_t>(targets.size()) == logits.rows);
  PT_CHECK(std::ranges::all_of(targets, [&](std::int32_t t) { return t < logits.cols; }));
  const Uploaded<std::int32_t> uploaded(targets);
  const Scratch<double> losses(logits.rows);
  dispatch(logits.dtype, [&]<class T>(T) {
    launch(logits.rows, 0,
           RowLoss<T>{View<T>(logits), logits.cols, uploaded.data(), losses.data(),
                      use == LogitsUse::kGradient});
  });
  return total_of(losses, logits.rows);
}

void part_exponentials(const Tensor& logits, std::span<const std::int32_t> own_targets,
                       const Tensor& statistics) {
  PT_CHECK(statistics.dtype == DType::kFloat64 && statistics.rows == logits.rows &&
           static_cast<std::int64_t>(own_targets.size()) == logits.rows);
  PT_CHECK(std::ranges::all_of(own_targets, [&](std::int32_t t) { return t < logits.cols; }));
  const Uploaded<std::int32_t> uploaded(own_targets);
  dispatch(logits.dtype, [&]<class T>(T) {
    launch(logits.rows, 0,
           PartRow<T>{View<T>(logits), logits.cols, uploaded.data(), View<double>(statistics)});
  });
}

double part_cross_entropy(const Tensor& logits, const PartTargets& targets,
                          const Tensor& statistics, LogitsUse use) {
  PT_CHECK(statistics.dtype == DType::kFloat64 && statistics.rows % logits.rows == 0);
  const Uploaded<std::int32_t> whole(targets.whole), own(targets.own);
  const Scratch<double> losses(logits.rows);
  dispatch(logits.dtype, [&]<class T>(T) {
    launch(logits.rows, 0,
           PartLoss<T>{View<T>(logits), logits.cols, logits.rows, statistics.rows / logits.rows,
                       targets.part, whole.data(), own.data(), View<double>(statistics),
                       losses.data(), use == LogitsUse::kGradient});
  });
  return total_of(losses, logits.rows);
}

}  // namespace ptrain::kernels
