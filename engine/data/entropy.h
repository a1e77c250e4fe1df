#pragma once

#include <cstdint>

#include "engine/data/index.h"

namespace ptrain::data {

// What a model that knows only how often tokens follow would reach on this very text, in nats a
// target: entropy of a target, and of a target given the token before it.
struct TextEntropy {
  double unigram = 0;
  double bigram = 0;
};

// Enough to tell, in a few seconds and some 500 MB at most, however large a text is.
inline constexpr std::int64_t kEntropyTargets = std::int64_t{1} << 24;

// Of the first `most` targets. EngineError (kUnusable) for an index without targets or with unknown
// tokens before that.
TextEntropy text_entropy(const Index& index, std::int64_t most = kEntropyTargets);

}  // namespace ptrain::data
