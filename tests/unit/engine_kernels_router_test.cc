#include <gtest/gtest.h>

#include <cmath>

#include "engine/kernels/expert_rows.h"
#include "engine/kernels/router.h"
#include "tests/support/expert_kernels.h"

namespace ptrain::kernels {
namespace {

// Choices of one token.
std::vector<std::int32_t> chosen_of(const RouterShape& shape, std::vector<double> logits,
                                    std::vector<double> bias = {}) {
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(shape.top_k));
  const auto row = [](auto& values, DType dtype) {
    return contiguous(values.data(), dtype, 1, std::ssize(values));
  };
  choose_experts(shape, row(logits, DType::kFloat64),
                 bias.empty() ? Tensor() : row(bias, DType::kFloat64), row(chosen, DType::kInt32));
  return chosen;
}

using Router = test::WithExpertKernels<testing::Test>;

using Chosen = std::vector<std::int32_t>;

TEST_F(Router, TiesGoToTheLowerIndex) {
  const RouterShape shape{.num_experts = 4, .top_k = 2};
  EXPECT_EQ(chosen_of(shape, {1, 1, 1, 1}), (Chosen{0, 1}));
  EXPECT_EQ(chosen_of(shape, {1, 2, 1, 2}), (Chosen{1, 3}));
  EXPECT_EQ(chosen_of(shape, {0, 1, 3, 1}), (Chosen{2, 1}));
}

TEST_F(Router, ABiasChoosesButIsNoWeight) {
  const RouterShape shape{.num_experts = 3, .top_k = 1, .sigmoid = true};
  EXPECT_EQ(chosen_of(shape, {0, 1, 2}), (Chosen{2}));
  EXPECT_EQ(chosen_of(shape, {0, 1, 2}, {1, 0, 0}), (Chosen{0}));
}

// Sums of the two best: 0.9 + 0.1 against 0.6 + 0.6, by hand.
TEST_F(Router, GroupsAreWorthTheirBestOrTheirTwoBest) {
  const auto logit = [](double score) { return std::log(score / (1 - score)); };
  const std::vector<double> logits = {logit(0.9), logit(0.1), logit(0.6), logit(0.6)};
  RouterShape shape{
      .num_experts = 4, .top_k = 1, .sigmoid = true, .num_groups = 2, .top_groups = 1};
  EXPECT_EQ(chosen_of(shape, logits), (Chosen{0}));
  shape.two_best = true;
  EXPECT_EQ(chosen_of(shape, logits), (Chosen{2}));
}

// As published for DeepSeek-V3: a group that is left out is never chosen, even where the others'
// biased scores are negative.
TEST_F(Router, GroupsThatAreLeftOutAreNeverChosen) {
  const RouterShape shape{.num_experts = 4,
                          .top_k = 2,
                          .sigmoid = true,
                          .num_groups = 2,
                          .top_groups = 1,
                          .two_best = true};
  EXPECT_EQ(chosen_of(shape, {0, 0, 0, 0}, {-1, -1, -2, -2}), (Chosen{0, 1}));
}

TEST_F(Router, RowsAreSortedByExpertAndDropsHaveNone) {
  std::vector<std::int32_t> chosen = {2, 0, 0, ~2, 2, 1};
  const ExpertRows rows = sort_by_expert(contiguous(chosen.data(), DType::kInt32, 3, 2), 4);
  EXPECT_EQ(rows.begin, (std::vector<std::int64_t>{0, 2, 3, 5, 5}));
  EXPECT_EQ(rows.slots, (Chosen{1, 2, 5, 0, 4}));
  EXPECT_EQ(rows.row_of, (Chosen{3, 0, 1, -1, 4, 2}));
  std::vector<float> x = {10, 20, 30}, y(5);
  take_rows(rows, contiguous(x.data(), DType::kFloat32, 3, 1),
            contiguous(y.data(), DType::kFloat32, 5, 1));
  EXPECT_EQ(y, (std::vector<float>{10, 20, 30, 10, 30}));
  std::vector<float> weights = {1, 2, 3, 4, 5, 6}, sums = {100, 100, 100};
  add_slots(rows, contiguous(y.data(), DType::kFloat32, 5, 1),
            contiguous(weights.data(), DType::kFloat32, 3, 2),
            contiguous(sums.data(), DType::kFloat32, 3, 1));
  EXPECT_EQ(sums, (std::vector<float>{100 + 10 + 20, 100 + 60, 100 + 150 + 180}));
}

}  // namespace
}  // namespace ptrain::kernels
