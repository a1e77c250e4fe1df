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

// Loss and gradients of a vocabulary cut at `ends`, each part as its rank makes them.
template <class T>
std::vector<double> in_parts(Matrix<T>& logits, const std::vector<std::int64_t>& ends) {
  const auto parts = std::ssize(ends);
  Doubles statistics(parts * logits.rows, kPartStatistics);
  const auto each_part = [&](const auto& f) {
    for (std::int64_t p = 0, begin = 0; p < parts; begin = ends[static_cast<std::size_t>(p++)]) {
      const std::int64_t size = ends[static_cast<std::size_t>(p)] - begin;
      std::vector<std::int32_t> own;
      for (const std::int32_t target : kTargets)
        own.push_back(target >= begin && target < begin + size
                          ? target - static_cast<std::int32_t>(begin)
                          : -1);
      f(p, logits.view().columns(begin, size), own);
    }
  };
  each_part([&](std::int64_t p, const Tensor& part, const auto& own) {
    part_exponentials(part, own, statistics.view().row_range(p * logits.rows, logits.rows));
  });
  std::vector<double> losses;
  each_part([&](std::int64_t p, const Tensor& part, const auto& own) {
    losses.push_back(part_cross_entropy(part, {kTargets, own, static_cast<int>(p)},
                                        statistics.view(), LogitsUse::kGradient));
  });
  return losses;
}

TEST(CrossEntropy, PartsOfAVocabularyGiveWhatTheWholeGives) {
  for (const std::vector<std::int64_t>& ends :
       {std::vector<std::int64_t>{19}, {7, 19}, {3, 4, 18, 19}, {0, 19}}) {
    auto logits = Doubles::random(4, 19, 1, 5), whole = logits;
    const double truth = cross_entropy(whole.view(), kTargets, LogitsUse::kGradient);
    for (const double loss : in_parts(logits, ends)) EXPECT_NEAR(loss, truth, 1e-13);
    for (std::int64_t r = 0; r < 4; ++r)
      for (std::int64_t c = 0; c < 19; ++c) EXPECT_NEAR(logits(r, c), whole(r, c), 1e-15);
    EXPECT_TRUE(logits.gaps_untouched());
  }
}

TEST(CrossEntropy, PartsFarApartStayFinite) {
  Matrix<float> logits(4, 19);
  logits.values.assign(logits.values.size(), -1000.0f);
  for (std::int64_t r = 0; r < 4; ++r) logits(r, 18) = 1000.0f;
  const auto losses = in_parts(logits, {10, 19});
  EXPECT_NEAR(losses[0], 2 * 2000.0, 1e-3);
  EXPECT_EQ(losses[0], losses[1]) << "the same bits on every rank";
  EXPECT_EQ(logits(2, 18), 0.0f);
  EXPECT_EQ(logits(0, 18), 1.0f);
}

}  // namespace
}  // namespace ptrain::kernels
