#include "engine/data/entropy.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "engine/base/engine_error.h"

namespace ptrain::data {
namespace {

using Counts = std::unordered_map<std::uint64_t, std::int64_t>;

// -sum n ln n, the part of an entropy that one group of counts gives before dividing by the total.
double minus_sum_n_log_n(const Counts& counts) {
  std::vector<std::int64_t> ordered;  // so that the sum does not hang on the order of a hash table
  for (const auto& [key, n] : counts) ordered.push_back(n);
  std::ranges::sort(ordered);
  double sum = 0;
  for (const std::int64_t n : ordered)
    sum -= static_cast<double>(n) * std::log(static_cast<double>(n));
  return sum;
}

// How often a target follows a token; silent tokens are no targets.
Counts count_pairs(const Index& index, std::int64_t most) {
  Counts pairs;
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < index.num_documents(); ++i) {
    const Tokens tokens = index.document(i);
    const auto silent = index.silent(i);
    auto range = silent.begin();
    for (std::int64_t t = 0; t < tokens.size(); ++t) {
      if (tokens[t] >= index.vocabulary())
        throw EngineError(ExitCode::kUnusable, "the token index holds an unknown token");
      while (range != silent.end() && range->end <= t) ++range;
      const bool learned = range == silent.end() || t < range->begin;
      if (t == 0 || !learned) continue;
      if (++total > most) return pairs;
      ++pairs[std::uint64_t{tokens[t - 1]} << 32 | tokens[t]];
    }
  }
  return pairs;
}

}  // namespace

TextEntropy text_entropy(const Index& index, std::int64_t most) {
  const Counts pairs = count_pairs(index, most);
  Counts before, target;
  std::int64_t total = 0;
  for (const auto& [pair, n] : pairs) {
    before[pair >> 32] += n;
    target[pair & 0xffffffff] += n;
    total += n;
  }
  if (total == 0) throw EngineError(ExitCode::kUnusable, "the text has no token to predict");
  const auto n = static_cast<double>(total);
  return {minus_sum_n_log_n(target) / n + std::log(n),
          (minus_sum_n_log_n(pairs) - minus_sum_n_log_n(before)) / n};
}

}  // namespace ptrain::data
