#include <gtest/gtest.h>

#include "launcher/plan/cost/attention_load.h"
#include "launcher/plan/plan.h"

namespace ptrain::plan {
namespace {

using packing::Strategy;

// Pieces of 100 and 30 tokens in blocks of 64: 64 x 64 + 36 x 100 pairs in two blocks, 30 x 30 in
// one; 130 tokens.
TEST(AttentionLoad, CountsBlocksByHand) {
  const auto whole = attention_load(100, {}, 64);
  EXPECT_DOUBLE_EQ(whole.blocks, 2 / 100.0);
  EXPECT_DOUBLE_EQ(whole.pairs, (64 * 64 + 36 * 100) / 100.0);
  const auto cut = attention_load(100, {{130, 7}}, 64);
  EXPECT_DOUBLE_EQ(cut.blocks, 3 / 130.0);
  EXPECT_DOUBLE_EQ(cut.pairs, (64 * 64 + 36 * 100 + 30 * 30) / 130.0);
  EXPECT_EQ(attention_load(128, {{128, 3}}, 64), attention_load(128, {}, 64));
}

// Five documents: 40, 40, 40, 70, 128 in rows of 128. Best fit puts 70 and 40 in one row, the other
// two 40 in a second, 128 in a third: 318 tokens of 384. Pairs in blocks of 64: 40 x 40 three
// times; 64 x 64 + 6 x 70; 64 x 64 + 64 x 128.
TEST(AttentionLoad, OfPackedRowsByHand) {
  const LengthHistogram lengths{{40, 3}, {70, 1}, {128, 1}};
  EXPECT_DOUBLE_EQ(row_fill(128, lengths, {}), 318.0 / 384);
  const auto load = packed_attention_load(128, lengths, {}, 64);
  EXPECT_DOUBLE_EQ(load.blocks, (3 + 2 + 2) / 384.0);
  EXPECT_DOUBLE_EQ(load.pairs, (3 * 40 * 40 + 64 * 64 + 6 * 70 + 64 * 64 + 64 * 128) / 384.0);
  EXPECT_EQ(packed_attention_load(128, {}, {}, 64), attention_load(128, {}, 64));
}

// 300 tokens: two whole rows, and 44 of a third.
TEST(AttentionLoad, LongDocumentsFillRows) {
  for (const auto strategy :
       {Strategy::kNextFit, Strategy::kFirstFit, Strategy::kBestFitDecreasing})
    EXPECT_DOUBLE_EQ(row_fill(128, {{300, 1}}, {strategy, 4096}), 300.0 / 384);
  EXPECT_NEAR(row_fill(128, {{std::int64_t{1} << 40, 1e6}}, {}), 1, 1e-9);
}

// A window takes documents of all lengths alike: 100 of two million pack as a million pairs do.
TEST(AttentionLoad, AWindowIsASampleOfAll) {
  EXPECT_DOUBLE_EQ(row_fill(128, {{32, 1e6}, {96, 1e6}}, {Strategy::kBestFitDecreasing, 100}), 1);
  EXPECT_DOUBLE_EQ(row_fill(128, {{100, 1e6}}, {Strategy::kBestFitDecreasing, 100}), 100.0 / 128);
}

// What makes documents of a quarter of a row cost a quarter of the pairs, to the second: 8 heads
// and 2 blocks of 1,024 tokens, whose forward and backward differ by nothing else.
TEST(AttentionLoad, ReachesThePlan) {
  PlanInput input;
  recipe::Recipe& recipe = input.recipe;
  recipe.model.hidden_size = 64;
  recipe.model.intermediate_size = 128;
  recipe.model.num_hidden_layers = 2;
  recipe.model.num_attention_heads = 8;
  recipe.model.vocab_size = 320;
  recipe.parallel.dp = recipe.parallel.shard = 1;
  recipe.parallel.micro_batch = 4;
  recipe.parallel.recompute = recipe::Recompute::kNone;
  recipe::Shape& shape = recipe.shapes.emplace_back();
  shape.name = "one";
  shape.sequence = 256;
  shape.global_batch_tokens = 1024;
  input.cluster = {"machine", {{"n", 1, std::int64_t{8} << 30}}, cluster::default_figures(), {}};
  cluster::Figures& figures = input.cluster.figures;
  const auto step_s = [&] { return plan_recipe(input)->plan.shapes[0].predicted.step_s; };
  const double one_document = step_s();
  EXPECT_NE(plan_recipe(input)->documents.find("one document"), std::string::npos);
  input.lengths = {{64, 100}};
  const double packed = step_s();
  // In blocks of 64, 256 tokens are 4 blocks and 64 x (64 + 128 + 192 + 256) pairs; packed, 4
  // blocks and 64 x 64 x 4.
  const double saved_pairs = 64.0 * (64 + 128 + 192 + 256) - 64.0 * 64 * 4;
  const auto pair_s = [](const cluster::HeadCost& head) {
    return head.pair_s + 8 * head.pair_dim_s;
  };
  const double both = pair_s(figures.attention.forward) + pair_s(figures.attention.backward);
  const double cold_caches = 1.3;
  EXPECT_NEAR(one_document - packed, cold_caches * 4 * 8 * 2 * saved_pairs * both, 1e-12);
  EXPECT_EQ(plan_recipe(input)->documents,
            "rows packed as when last indexed: 100 % of 'one' filled");
}

}  // namespace
}  // namespace ptrain::plan
