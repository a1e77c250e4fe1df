#include "engine/kernels/attention_softmax.h"

#include <cmath>

#include "engine/kernels/fold.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

// scores [0, seen) -> e^(scale * (score - largest)), the rest up to `keys` -> 0. Returns their sum.
template <class T>
PT_INLINE T softmax_row(T* scores, std::int64_t seen, std::int64_t keys, T scale, T& log_sum_exp) {
  const T largest = largest_of(scores, seen);
  const T sum = sum_over<T>(
      seen, [&](std::int64_t i) { return scores[i] = exponential((scores[i] - largest) * scale); });
  for (std::int64_t i = seen; i < keys; ++i) scores[i] = T{0};
  log_sum_exp = largest * scale + std::log(sum);
  return sum;
}

template <class T>
PT_INLINE void softmax_forward_body(const SoftmaxForward<T>& args) {
  const ScoreBlock<T>& block = args.block;
  const std::int64_t keys = block.first_query + block.rows;
  for (std::int64_t r = 0; r < block.rows; ++r)
    args.sums[r] = softmax_row(block.scores + r * block.stride, block.first_query + r + 1, keys,
                               block.scale, args.log_sum_exp[r * args.lse_stride]);
}

template <class T>
PT_INLINE void normalise_body(const SoftmaxForward<T>& args) {
  for (std::int64_t r = 0; r < args.block.rows; ++r) {
    T* row = args.output + r * args.output_stride;
    const T factor = T{1} / args.sums[r];
#pragma omp simd
    for (std::int64_t i = 0; i < args.head_dim; ++i) row[i] *= factor;
  }
}

template <class T>
PT_INLINE T dot(const T* a, const T* b, std::int64_t size) {
  return sum_over<T>(size, [&](std::int64_t i) { return a[i] * b[i]; });
}

template <class T>
PT_INLINE void softmax_backward_body(const SoftmaxBackward<T>& args) {
  const ScoreBlock<T>& block = args.block;
  const std::int64_t keys = block.first_query + block.rows;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    T* scores = block.scores + r * block.stride;
    T* dscores = args.dscores + r * block.stride;
    const T log_sum_exp = args.log_sum_exp[r * args.lse_stride];
    const T mean = dot(args.output + r * args.output_stride, args.doutput + r * args.doutput_stride,
                       args.head_dim);
    const std::int64_t seen = block.first_query + r + 1;
#pragma omp simd
    for (std::int64_t i = 0; i < seen; ++i) {
      const T probability = exponential(scores[i] * block.scale - log_sum_exp);
      scores[i] = probability;
      dscores[i] = probability * (dscores[i] - mean) * block.scale;
    }
    for (std::int64_t i = seen; i < keys; ++i) scores[i] = dscores[i] = T{0};
  }
}

}  // namespace

PT_KERNEL(softmax_forward, SoftmaxForward)
PT_KERNEL(normalise, SoftmaxForward)
PT_KERNEL(softmax_backward, SoftmaxBackward)

}  // namespace ptrain::kernels
