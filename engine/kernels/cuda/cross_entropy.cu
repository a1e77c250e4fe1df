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

}  // namespace ptrain::kernels
