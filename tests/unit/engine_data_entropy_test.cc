#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/data/entropy.h"
#include "tests/support/memory_index.h"

namespace ptrain::data {
namespace {

// Pairs: a-a, a-b, b-EOS, a-EOS. Targets a, b, EOS, EOS: 2 x 1/4 ln 4 + 1/2 ln 2.
// After a (3 of 4): three different targets, ln 3; after b: one, 0.
TEST(TextEntropy, HandCalculation) {
  const TextEntropy entropy =
      text_entropy(*memory_index({{'a', 'a', 'b', kByteEos}, {'a', kByteEos}}));
  EXPECT_NEAR(entropy.unigram, 0.5 * std::log(4.0) + 0.5 * std::log(2.0), 1e-12);
  EXPECT_NEAR(entropy.bigram, 0.75 * std::log(3.0), 1e-12);
}

// Of the first three: three different targets; after a (2 of 3): two, after b: one.
TEST(TextEntropy, CountsNoMoreThanItIsAskedFor) {
  const TextEntropy entropy =
      text_entropy(*memory_index({{'a', 'a', 'b', kByteEos}, {'a', kByteEos}}), 3);
  EXPECT_NEAR(entropy.unigram, std::log(3.0), 1e-12);
  EXPECT_NEAR(entropy.bigram, 2.0 / 3 * std::log(2.0), 1e-12);
}

TEST(TextEntropy, RefusesTextWithoutTargetsOrWithForeignTokens) {
  EXPECT_THROW(text_entropy(*memory_index({{kByteEos}})), EngineError);
  EXPECT_THROW(text_entropy(*memory_index({{'a', 300}})), EngineError);
}

}  // namespace
}  // namespace ptrain::data
