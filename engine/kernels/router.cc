#include "engine/kernels/router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/engine_error.h"
#include "engine/kernels/rows.h"

namespace ptrain::kernels {
namespace {

template <class T>
constexpr T kTiny = T(1e-20);  // as DeepSeek-V3: scores that are all 0 give weights that are 0

template <class T>
using Values = std::vector<T>;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

template <class T>
T* row_of(const Tensor& tensor, std::int64_t t) {
  return tensor.as<T>() + t * tensor.stride;
}

// Scores of one token; returns log-sum-exp of its logits.
template <class T>
T score(bool sigmoid, const T* logits, Values<T>& scores) {
  const T most = *std::max_element(logits, logits + std::ssize(scores));
  T sum = 0;
  for (std::size_t e = 0; e < scores.size(); ++e) sum += std::exp(logits[e] - most);
  const T log_sum_exp = most + std::log(sum);
  for (std::size_t e = 0; e < scores.size(); ++e)
    scores[e] = sigmoid ? T{1} / (T{1} + std::exp(-logits[e])) : std::exp(logits[e] - most) / sum;
  return log_sum_exp;
}

// Indices of the `count` largest values, the largest first; ties by the lower index.
template <class T>
void largest(const Values<T>& values, std::int64_t count, std::vector<std::int32_t>& order) {
  order.resize(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::ranges::partial_sort(order, order.begin() + count, [&](std::int32_t a, std::int32_t b) {
    const T first = values[at(a)], second = values[at(b)];
    return first > second || (first == second && a < b);
  });
  order.resize(at(count));
}

template <class T>
T group_worth(const T* scores, std::int64_t size, bool two_best) {
  T best = -std::numeric_limits<T>::infinity(), second = best;
  for (std::int64_t i = 0; i < size; ++i) {
    if (scores[i] > best)
      second = std::exchange(best, scores[i]);
    else
      second = std::max(second, scores[i]);
  }
  return two_best ? best + second : best;
}

// Scores outside the best groups become less than any other.
template <class T>
void keep_best_groups(const RouterShape& shape, Values<T>& scores) {
  if (shape.top_groups >= shape.num_groups) return;
  const std::int64_t size = shape.num_experts / shape.num_groups;
  Values<T> worth;
  for (std::int64_t group = 0; group < shape.num_groups; ++group)
    worth.push_back(group_worth(scores.data() + group * size, size, shape.two_best));
  std::vector<std::int32_t> kept;
  largest(worth, shape.top_groups, kept);
  for (std::int64_t e = 0; e < shape.num_experts; ++e)
    if (std::ranges::find(kept, e / size) == kept.end())
      scores[at(e)] = -std::numeric_limits<T>::infinity();
}

// What weights of the chosen are divided by.
template <class T>
T divisor(const RouterShape& shape, const Values<T>& scores, const std::int32_t* chosen) {
  if (!shape.normalises) return 1;
  T sum = shape.sigmoid ? kTiny<T> : T{0};
  for (std::int64_t j = 0; j < shape.top_k; ++j) sum += scores[at(expert_of(chosen[j]))];
  return sum;
}

// dscores += the gradient through the weights of the chosen.
template <class T>
void through_weights(const RouterShape& shape, const Values<T>& scores, const std::int32_t* chosen,
                     const T* dweights, Values<T>& dscores) {
  const T by = divisor(shape, scores, chosen), scale = static_cast<T>(shape.scale);
  T mean = 0;
  for (std::int64_t j = 0; j < shape.top_k && shape.normalises; ++j)
    mean += dweights[j] * scores[at(expert_of(chosen[j]))] / by;
  for (std::int64_t j = 0; j < shape.top_k; ++j)
    dscores[at(expert_of(chosen[j]))] += scale * (dweights[j] - mean) / by;
}

// dscores += the gradient through probabilities, which are scores over their sum.
template <class T>
void through_probabilities(bool sigmoid, const Values<T>& scores, const T* dprobabilities,
                           Values<T>& dscores) {
  T sum = 1, mean = 0;
  if (sigmoid) {
    sum = kTiny<T>;
    for (const T value : scores) sum += value;
    for (std::size_t e = 0; e < scores.size(); ++e) mean += dprobabilities[e] * scores[e] / sum;
  }
  for (std::size_t e = 0; e < scores.size(); ++e) dscores[e] += (dprobabilities[e] - mean) / sum;
}

// logits become their gradient, from that of their scores.
template <class T>
void through_scores(bool sigmoid, const Values<T>& scores, const Values<T>& dscores, T* logits) {
  T mean = 0;
  for (std::size_t e = 0; e < scores.size() && !sigmoid; ++e) mean += scores[e] * dscores[e];
  for (std::size_t e = 0; e < scores.size(); ++e)
    logits[e] = scores[e] * (sigmoid ? dscores[e] * (T{1} - scores[e]) : dscores[e] - mean);
}

}  // namespace

void choose_experts(const RouterShape& shape, const Tensor& logits, const Tensor& bias,
                    const Tensor& chosen) {
  PT_CHECK(logits.cols == shape.num_experts && chosen.cols == shape.top_k);
  PT_CHECK(chosen.dtype == DType::kInt32 && chosen.rows == logits.rows);
  dispatch(logits.dtype, [&]<class T>(T) {
    Values<T> scores(at(shape.num_experts));
    std::vector<std::int32_t> order;
    for (std::int64_t t = 0; t < logits.rows; ++t) {
      score(shape.sigmoid, row_of<T>(logits, t), scores);
      for (std::size_t e = 0; e < scores.size() && !bias.empty(); ++e) scores[e] += bias.as<T>()[e];
      keep_best_groups(shape, scores);
      largest(scores, shape.top_k, order);
      std::ranges::copy(order, row_of<std::int32_t>(chosen, t));
    }
  });
}

void weigh_experts(const RouterShape& shape, const Tensor& logits, const Tensor& chosen,
                   const Tensor& weights) {
  PT_CHECK(weights.cols == shape.top_k && weights.rows == logits.rows);
  dispatch(logits.dtype, [&]<class T>(T) {
    Values<T> scores(at(shape.num_experts));
    for (std::int64_t t = 0; t < logits.rows; ++t) {
      const auto* choice = row_of<std::int32_t>(chosen, t);
      score(shape.sigmoid, row_of<T>(logits, t), scores);
      const T by = divisor(shape, scores, choice);
      for (std::int64_t j = 0; j < shape.top_k; ++j)
        row_of<T>(weights, t)[j] =
            scores[at(expert_of(choice[j]))] / by * static_cast<T>(shape.scale);
    }
  });
}

void router_backward(const RouterShape& shape, const Tensor& chosen, const Tensor& dweights,
                     const RouterLoss& loss, const Tensor& logits) {
  PT_CHECK(std::ssize(loss.row_of) == logits.rows);
  dispatch(logits.dtype, [&]<class T>(T) {
    Values<T> scores(at(shape.num_experts)), dscores(scores.size()), softmax(scores.size());
    for (std::int64_t t = 0; t < logits.rows; ++t) {
      T* logit = row_of<T>(logits, t);
      const T log_sum_exp = score(shape.sigmoid, logit, scores);
      for (std::size_t e = 0; e < softmax.size(); ++e)
        softmax[e] = std::exp(logit[e] - log_sum_exp);
      std::ranges::fill(dscores, T{0});
      through_weights(shape, scores, row_of<std::int32_t>(chosen, t), row_of<T>(dweights, t),
                      dscores);
      const std::int32_t row = loss.row_of[at(t)];
      if (row >= 0)
        through_probabilities(shape.sigmoid, scores, row_of<T>(loss.balance, row), dscores);
      through_scores(shape.sigmoid, scores, dscores, logit);
      if (row < 0) continue;
      const T square = 2 * loss.square.as<T>()[row] * log_sum_exp;
      for (std::size_t e = 0; e < softmax.size(); ++e) logit[e] += square * softmax[e];
    }
  });
}

void sum_router(const RouterShape& shape, const Tensor& logits,
                std::span<const std::int32_t> row_of_token, RouterSums& sums) {
  set_zero(sums.probabilities), set_zero(sums.squares);
  dispatch(logits.dtype, [&]<class T>(T) {
    Values<T> scores(at(shape.num_experts));
    for (std::int64_t t = 0; t < logits.rows; ++t) {
      const std::int32_t row = row_of_token[at(t)];
      if (row < 0) continue;
      const T log_sum_exp = score(shape.sigmoid, row_of<T>(logits, t), scores);
      sums.squares.as<T>()[row] += log_sum_exp * log_sum_exp;
      T total = shape.sigmoid ? kTiny<T> : T{0};
      for (const T value : scores) total += value;
      for (std::size_t e = 0; e < scores.size(); ++e) {
        const T probability = scores[e] / total;
        row_of<T>(sums.probabilities, row)[e] += probability;
        if (probability > 0)
          sums.entropy -= static_cast<double>(probability * std::log(probability));
      }
    }
  });
}

}  // namespace ptrain::kernels
