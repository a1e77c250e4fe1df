#include "engine/data/entropy.h"

#include <cmath>
#include <vector>

#include "engine/base/engine_error.h"

namespace ptrain::data {
namespace {

constexpr std::size_t kTokens = kByteEos + 1;

// -sum n ln n, the part of an entropy that one group of counts gives before dividing by the total.
double minus_sum_n_log_n(std::span<const std::int64_t> counts) {
  double sum = 0;
  for (const std::int64_t n : counts)
    if (n > 0) sum -= static_cast<double>(n) * std::log(static_cast<double>(n));
  return sum;
}

std::vector<std::int64_t> count_pairs(const Index& index) {
  std::vector<std::int64_t> pairs(kTokens * kTokens, 0);
  for (std::int64_t i = 0; i < index.num_documents(); ++i) {
    const auto tokens = index.document(i);
    for (std::size_t t = 1; t < tokens.size(); ++t) {
      if (tokens[t - 1] >= kTokens || tokens[t] >= kTokens)
        throw EngineError(ExitCode::kUnusable, "the token index holds an unknown token");
      ++pairs[tokens[t - 1] * kTokens + tokens[t]];
    }
  }
  return pairs;
}

}  // namespace

TextEntropy text_entropy(const Index& index) {
  const std::vector<std::int64_t> pairs = count_pairs(index);
  std::vector<std::int64_t> before(kTokens, 0), target(kTokens, 0);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    before[i / kTokens] += pairs[i];
    target[i % kTokens] += pairs[i];
    total += pairs[i];
  }
  if (total == 0) throw EngineError(ExitCode::kUnusable, "the text has no token to predict");
  const auto n = static_cast<double>(total);
  return {minus_sum_n_log_n(target) / n + std::log(n),
          (minus_sum_n_log_n(pairs) - minus_sum_n_log_n(before)) / n};
}

}  // namespace ptrain::data
