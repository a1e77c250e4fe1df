#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "launcher/plan/stages.h"
#include "tests/support/small_llama.h"

namespace ptrain::plan {
namespace {

using support::small_llama;
using Counts = std::vector<int>;

// By hand: products of a block 2 x (64 + 32 + 32 + 64 + 3 x 96) = 960 FLOPs a token, attention
// 4 x 8 a pair, so 960 + 16 n in rows of n; a head of 64 x 8 takes 1024; an embedding nothing.
TEST(BalancedStages, CountHeadAndEmbedding) {
  EXPECT_EQ(*balanced_stages(small_llama(4), 4, 2), (Counts{3, 3}));
  EXPECT_EQ(*balanced_stages(small_llama(4), 4, 5), (Counts{2, 1, 1, 1, 1}));
  // The embedding costs nothing, so a stage of its own is waste until there are enough.
  EXPECT_EQ(*balanced_stages(small_llama(4), 4, 6), (Counts{1, 1, 1, 1, 1, 1}));
  // A head of 16 384 is as long as two blocks and more.
  const Counts heavy = *balanced_stages(small_llama(8, false, 160), 4, 4);
  EXPECT_LE(heavy[3], heavy[0]);
  EXPECT_EQ(std::accumulate(heavy.begin(), heavy.end(), 0), 10);
}

// No split has a shorter longest stage: all splits of ten layers into four stages, tried one by
// one, by layers of cost 0, 1, ... 1, 3.
TEST(BalancedStages, AreTheBestOfAllSplits) {
  const auto architecture = small_llama(8, false, 180);  // head 2880 = 3 x 960
  std::vector<double> costs(10, 1.0);
  costs.front() = 0;
  costs.back() = 3;
  const auto longest = [&](const Counts& counts) {
    double most = 0;
    std::size_t at = 0;
    for (const int count : counts) {
      double sum = 0;
      for (int i = 0; i < count; ++i) sum += costs[at++];
      most = std::max(most, sum);
    }
    return most;
  };
  double best = 100;
  for (int a = 1; a < 8; ++a)
    for (int b = 1; a + b < 9; ++b)
      for (int c = 1; a + b + c < 10; ++c)
        best = std::min(best, longest({a, b, c, 10 - a - b - c}));
  EXPECT_EQ(longest(*balanced_stages(architecture, 0, 4)), best);
}

// Rows of 4: a block costs as much as the head, and the embedding nothing.
TEST(BalancedStages, LeaveNoLayerOutAndNoStageEmpty) {
  struct Case {
    int num_blocks, num_stages;
  };
  for (const auto [num_blocks, num_stages] :
       {Case{7, 2}, Case{10, 3}, Case{30, 4}, Case{40, 8}, Case{40, 16}, Case{80, 32}}) {
    const Counts counts = *balanced_stages(small_llama(num_blocks), 4, num_stages);
    EXPECT_EQ(std::ssize(counts), num_stages);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), num_blocks + 2) << num_stages;
    EXPECT_GE(std::ranges::min(counts), 1) << num_blocks;
    Counts costs = counts;
    costs.front() -= 1;
    EXPECT_EQ(std::ranges::max(costs), (num_blocks + num_stages) / num_stages) << num_blocks;
  }
}

TEST(BalancedStages, MoreThanLayersAreRefused) {
  const auto stages = balanced_stages(small_llama(2), 4, 5);
  ASSERT_FALSE(stages);
  EXPECT_EQ(stages.error().message,
            "5 stages, but the model has 4 layers, embedding and head counted");
  EXPECT_EQ(stages.error().hint, "pp x virtual may be 4 at most");
}

TEST(StagesFromText, AreCountsOfAllLayers) {
  EXPECT_EQ(*stages_from("3,1,2", 6, 3), (Counts{3, 1, 2}));
  for (const char* text : {"", ",", "3,", "3,,3", "3;3", "3,0,3", "3,-1,4", "3, 3", "a"}) {
    const auto stages = stages_from(text, 6, 2);
    EXPECT_FALSE(stages) << text;
  }
  EXPECT_EQ(
      stages_from("3;3", 6, 2).error().message,
      "parallel.stages: '3;3' in the list is no count of layers; allowed: whole numbers from 1 "
      "up, separated by commas without spaces, such as 9,8,9");
  const auto wrong = stages_from("3,2", 6, 2);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "parallel.stages names 5 layers in 2 stages, but pp x virtual is 2 and the model has 6 "
            "layers, embedding and head counted");
  EXPECT_EQ(wrong.error().hint, "give 2 counts that add up to 6, or leave it out");
  EXPECT_FALSE(stages_from("3,3", 6, 3));
}

}  // namespace
}  // namespace ptrain::plan
