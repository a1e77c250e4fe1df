#pragma once

#include "engine/data/index.h"

namespace ptrain::data {

// What a model that knows only how often tokens follow would reach on this very text, in nats a
// target: entropy of a target, and of a target given the token before it.
struct TextEntropy {
  double unigram = 0;
  double bigram = 0;
};

// EngineError (kUnusable) for an index without targets or with unknown tokens.
TextEntropy text_entropy(const Index& index);

}  // namespace ptrain::data
