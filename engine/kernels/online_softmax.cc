#include "engine/kernels/online_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "engine/kernels/fold.h"
#include "engine/kernels/score_row.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

constexpr double kLn2 = std::numbers::ln2;

PT_INLINE void scale_output(const OnlineSoftmax& args, std::int64_t r, float factor) {
  float* output = args.output + r * args.output_stride;
#pragma omp simd
  for (std::int64_t i = 0; i < args.value_dim; ++i) output[i] *= factor;
}

PT_INLINE void raise_exponent(const OnlineSoftmax& args, std::int64_t r, double largest) {
  const auto exponent = static_cast<float>(std::ceil(largest / kLn2));
  if (exponent <= args.exponent[r]) return;
  const float factor = std::exp2(args.exponent[r] - exponent);
  args.sums[r] *= factor;
  scale_output(args, r, factor);
  args.exponent[r] = exponent;
}

PT_INLINE void add_row(const OnlineSoftmax& args, std::int64_t r) {
  const ScoreBlock<float>& block = args.block;
  float* scores = block.scores + r * block.stride;
  const Seen seen = seen_by(block, r);
  clear_unseen(block, seen, scores);
  if (seen.none()) return;
  cap(block, seen, scores);
  float* first = scores + seen.begin;
  const std::int64_t num_seen = seen.end - seen.begin;
  const float scale = scale_behind_cap(block), top = largest_of(first, num_seen);
  const double largest = static_cast<double>(scale) * static_cast<double>(top);
  raise_exponent(args, r, largest);
  const auto below = static_cast<float>(largest - static_cast<double>(args.exponent[r]) * kLn2);
  args.sums[r] += sum_over<float>(num_seen, [&](std::int64_t i) {
    return first[i] = exponential((first[i] - top) * scale + below);
  });
}

}  // namespace

PT_CLONES void begin_softmax(const OnlineSoftmax& args, bool goes_on) {
  for (std::int64_t r = 0; r < args.block.rows; ++r) {
    if (!goes_on) {
      args.exponent[r] = -std::numeric_limits<float>::infinity();
      args.sums[r] = 0;
      std::fill_n(args.output + r * args.output_stride, args.value_dim, 0.0F);
      continue;
    }
    const auto lse = static_cast<double>(args.log_sum_exp[r * args.log_sum_exp_stride]);
    args.exponent[r] = static_cast<float>(std::ceil(lse / kLn2));
    args.sums[r] = static_cast<float>(std::exp(lse - args.exponent[r] * kLn2));
    scale_output(args, r, args.sums[r]);
  }
}

PT_CLONES void add_to_softmax(const OnlineSoftmax& args) {
  for (std::int64_t r = 0; r < args.block.rows; ++r) add_row(args, r);
}

PT_CLONES void finish_softmax(const OnlineSoftmax& args) {
  for (std::int64_t r = 0; r < args.block.rows; ++r) {
    scale_output(args, r, 1 / args.sums[r]);
    const auto sum = static_cast<double>(args.sums[r]);
    args.log_sum_exp[r * args.log_sum_exp_stride] =
        static_cast<float>(args.exponent[r] * kLn2 + std::log(sum));
  }
}

}  // namespace ptrain::kernels
