#include <gtest/gtest.h>

#include "engine/kernels/cross_entropy.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;
using test::Matrix;

const std::vector<std::int32_t> kTargets{3, -1, 18, 0};

double plain_loss(const Doubles& logits) {
  double loss = 0;
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    const std::int64_t target = kTargets[static_cast<std::size_t>(r)];
    if (target < 0) continue;
    double sum = 0;
    for (std::int64_t c = 0; c < logits.cols; ++c) sum += std::exp(logits(r, c));
    loss += std::log(sum) - logits(r, target);
  }
  return loss;
}

TEST(CrossEntropy, LossAndGradient) {
  auto logits = Doubles::random(4, 19, 1, 5);
  Doubles gradient = logits, scratch = logits;
  EXPECT_NEAR(cross_entropy(gradient.view(), kTargets, LogitsUse::kGradient), plain_loss(logits),
              1e-13);
  EXPECT_EQ(cross_entropy(scratch.view(), kTargets, LogitsUse::kLossOnly),
            cross_entropy(Doubles(logits).view(), kTargets, LogitsUse::kGradient));
  EXPECT_LT(test::gradient_error(logits, gradient, [&] { return plain_loss(logits); }), 1e-8);
  for (std::int64_t c = 0; c < 19; ++c) EXPECT_EQ(gradient(1, c), 0.0);
  EXPECT_TRUE(gradient.gaps_untouched());
}

TEST(CrossEntropy, FloatIsClose) {
  auto logits = Matrix<float>::random(4, 19, 1);
  EXPECT_NEAR(cross_entropy(logits.view(), kTargets, LogitsUse::kGradient),
              plain_loss(Doubles::random(4, 19, 1)), 1e-5);
}

TEST(CrossEntropy, LargeLogitsStayFinite) {
  Matrix<float> logits(1, 2);
  logits.values = {1000.0f, 998.0f};
  const std::vector<std::int32_t> target{1};
  EXPECT_NEAR(cross_entropy(logits.view(), target, LogitsUse::kGradient),
              2 + std::log1p(std::exp(-2)), 1e-5);
  EXPECT_NEAR(logits(0, 0), 1 / (1 + std::exp(-2)), 1e-6);
}

TEST(CrossEntropy, RefusesATargetOutsideTheVocabulary) {
  Matrix<float> logits(1, 2);
  const std::vector<std::int32_t> target{2};
  EXPECT_ANY_THROW(cross_entropy(logits.view(), target, LogitsUse::kGradient));
}

}  // namespace
}  // namespace ptrain::kernels
