#include "engine/kernels/attention_softmax.h"

#include <cmath>
#include <limits>

#include "engine/kernels/fold.h"
#include "engine/kernels/score_row.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

// Seen scores -> e^(scale * (score - largest)), the others of `keys` -> 0. Returns their sum.
template <class T>
PT_INLINE T softmax_row(const ScoreBlock<T>& block, T* scores, const Seen& seen, T& log_sum_exp) {
  clear_unseen(block, seen, scores);
  if (seen.none()) {
    log_sum_exp = -std::numeric_limits<T>::infinity();
    return T{1};
  }
  const T largest = largest_of(scores + seen.begin, seen.end - seen.begin);
  const T scale = scale_behind_cap(block);
  T* first = scores + seen.begin;
  const T sum = sum_over<T>(seen.end - seen.begin, [&](std::int64_t i) {
    return first[i] = exponential((first[i] - largest) * scale);
  });
  log_sum_exp = largest * scale + std::log(sum);
  return sum;
}

template <class T>
PT_INLINE void softmax_forward_body(const SoftmaxForward<T>& args) {
  const ScoreBlock<T>& block = args.block;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    T* scores = block.scores + r * block.stride;
    const Seen seen = seen_by(block, r);
    cap(block, seen, scores);
    args.sums[r] = softmax_row(block, scores, seen, args.log_sum_exp[r * args.log_sum_exp_stride]);
  }
}

template <class T>
PT_INLINE void normalise_body(const SoftmaxForward<T>& args) {
  for (std::int64_t r = 0; r < args.block.rows; ++r) {
    T* row = args.output + r * args.output_stride;
    const T factor = T{1} / args.sums[r];
#pragma omp simd
    for (std::int64_t i = 0; i < args.value_dim; ++i) row[i] *= factor;
  }
}

template <class T>
PT_INLINE T dot(const T* a, const T* b, std::int64_t size) {
  return sum_over<T>(size, [&](std::int64_t i) { return a[i] * b[i]; });
}

template <class T>
struct BackwardRow {
  T* scores;
  T* dscores;
  Seen seen;
  T log_sum_exp;
  T mean;  // of the probabilities' gradients, by the probabilities
};

template <class T>
PT_INLINE void backward_row(const ScoreBlock<T>& block, const BackwardRow<T>& row) {
#pragma omp simd
  for (std::int64_t i = row.seen.begin; i < row.seen.end; ++i) {
    const T probability = exponential(row.scores[i] * block.scale - row.log_sum_exp);
    row.scores[i] = probability;
    row.dscores[i] = probability * (row.dscores[i] - row.mean) * block.scale;
  }
}

template <class T>
PT_INLINE void capped_backward_row(const ScoreBlock<T>& block, const BackwardRow<T>& row) {
#pragma omp simd
  for (std::int64_t i = row.seen.begin; i < row.seen.end; ++i) {
    const T score = capped(row.scores[i], block), share = score / block.softcap;
    const T probability = exponential(score - row.log_sum_exp);
    row.scores[i] = probability;
    row.dscores[i] =
        probability * (row.dscores[i] - row.mean) * (T{1} - share * share) * block.scale;
  }
}

template <class T>
PT_INLINE void softmax_backward_body(const SoftmaxBackward<T>& args) {
  const ScoreBlock<T>& block = args.block;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    T* scores = block.scores + r * block.stride;
    T* dscores = args.dscores + r * block.stride;
    const T log_sum_exp = args.log_sum_exp[r * args.log_sum_exp_stride];
    const T mean = dot(args.output + r * args.output_stride, args.doutput + r * args.doutput_stride,
                       args.value_dim);
    const Seen seen = seen_by(block, r);
    if (block.softcap > 0) {
      capped_backward_row(block, {scores, dscores, seen, log_sum_exp, mean});
    } else {
      backward_row(block, {scores, dscores, seen, log_sum_exp, mean});
    }
    clear_unseen(block, seen, scores);
    clear_unseen(block, seen, dscores);
  }
}

}  // namespace

PT_KERNEL(softmax_forward, SoftmaxForward)
PT_KERNEL(normalise, SoftmaxForward)
PT_KERNEL(softmax_backward, SoftmaxBackward)

}  // namespace ptrain::kernels
