#pragma once

#include <cstdint>

namespace ptrain::kernels {

// One block of scores: row r belongs to query first_query + r, which sees the keys up to itself,
// and only the last `window` of these where there is a window, which may be none. Keys and queries
// are counted alike, from the block's first key.
template <class T>
struct ScoreBlock {
  T* scores;  // [rows, keys]
  std::int64_t stride;
  std::int64_t rows;
  std::int64_t first_query;
  std::int64_t keys;        // at most first_query + rows
  T scale;                  // multiplies the scores first
  T softcap = 0;            // then they become softcap * tanh(score / softcap); 0: they do not
  std::int64_t window = 0;  // 0: none
};

template <class T>
struct SoftmaxForward {
  ScoreBlock<T> block;  // becomes e^(score - largest), zero where masked
  T* log_sum_exp;       // one a row, `log_sum_exp_stride` apart
  std::int64_t log_sum_exp_stride;
  T* output;  // after `normalise`: divided by the row's sum
  std::int64_t output_stride;
  std::int64_t value_dim;
  T* sums;  // [rows]
};
void softmax_forward(const SoftmaxForward<float>& args);
void softmax_forward(const SoftmaxForward<double>& args);
void normalise(const SoftmaxForward<float>& args);
void normalise(const SoftmaxForward<double>& args);

template <class T>
struct SoftmaxBackward {
  ScoreBlock<T> block;  // becomes the probabilities, zero where masked
  T* dscores;           // same shape: from the probabilities' gradient to the scores'
  const T* log_sum_exp;
  std::int64_t log_sum_exp_stride;
  const T* output;  // [rows, value_dim]
  std::int64_t output_stride;
  const T* doutput;
  std::int64_t doutput_stride;
  std::int64_t value_dim;
};
void softmax_backward(const SoftmaxBackward<float>& args);
void softmax_backward(const SoftmaxBackward<double>& args);

}  // namespace ptrain::kernels
