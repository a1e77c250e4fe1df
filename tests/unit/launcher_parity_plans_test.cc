#include <gtest/gtest.h>

#include "launcher/parity/plans.h"
#include "tests/support/example_plan.h"

namespace ptrain::parity {
namespace {

run::Plan two_shapes() {
  run::Plan plan = support::example_plan();
  plan.recipe.model.vocab_size = 320;
  plan.shapes.resize(1);
  plan.recipe.shapes.resize(1);
  plan.shapes.push_back(plan.shapes.front());
  plan.recipe.shapes.push_back(plan.recipe.shapes.front());
  plan.shapes[1].name = plan.recipe.shapes[1].name = "second";
  plan.recipe.shapes[1].sequence = 32;
  mesh::Layout& layout = plan.shapes[1].layout = {};
  layout.dp = 2;
  layout.shard = 2;
  layout.zero = 3;
  layout.micro_batch = 3;
  layout.num_micro_batches = 5;
  layout.recompute = recipe::Recompute::kFull;
  layout.shared_window = true;
  plan.ranks.clear();
  for (int rank = 0; rank < layout.num_ranks(); ++rank) plan.ranks.push_back({rank, "here", rank});
  return plan;
}

TEST(ParityPlans, OneMicroBatchOfOneShape) {
  const run::Plan plan = with_one_micro_batch(two_shapes(), 1);
  ASSERT_EQ(plan.shapes.size(), 1u);
  ASSERT_EQ(plan.recipe.shapes.size(), 1u);
  EXPECT_EQ(plan.shapes[0].name, "second");
  EXPECT_EQ(mesh::to_string(plan.shapes[0].layout), "dp2 shard2 zero3 mb3x1 recompute window");
  EXPECT_EQ(plan.recipe.shapes[0].global_batch_tokens, 4 * 3 * 32);
  EXPECT_EQ(plan.ranks.size(), 4u);
}

TEST(ParityPlans, TheReferenceMakesTheSameMicroBatchesAlone) {
  const run::Plan plan = on_one_rank(with_one_micro_batch(two_shapes(), 1));
  EXPECT_EQ(mesh::to_string(plan.shapes[0].layout), "mb3x4");
  EXPECT_EQ(plan.recipe.shapes[0].global_batch_tokens, 4 * 3 * 32);
  EXPECT_EQ(plan.ranks.size(), 1u);
}

// Where it multiplies in another dtype it rounds otherwise.
TEST(ParityPlans, TheReferenceKeepsTheDTypesOfLayers) {
  run::Plan plan = with_one_micro_batch(two_shapes(), 1);
  plan.recipe.precision = recipe::Precision::kFloat32;
  EXPECT_EQ(precision_of(plan), recipe::Precision::kFloat32);
  plan.shapes[0].layout.layer_dtypes = {DType::kFloat32, DType::kBFloat16};
  EXPECT_EQ(on_one_rank(plan).shapes[0].layout.layer_dtypes, plan.shapes[0].layout.layer_dtypes);
  EXPECT_EQ(precision_of(plan), recipe::Precision::kBFloat16);
  plan.recipe.precision = recipe::Precision::kBFloat16;
  plan.shapes[0].layout.layer_dtypes = {DType::kFloat32, DType::kFloat32};
  EXPECT_EQ(precision_of(plan), recipe::Precision::kFloat32);
}

// What it must pass: the reader of plans refuses one whose parts do not fit.
TEST(ParityPlans, BothCanBeRead) {
  const run::Plan layout = with_one_micro_batch(two_shapes(), 1);
  for (const run::Plan& plan : {layout, on_one_rank(layout)}) {
    const auto read = run::plan_from_text(run::to_text(plan));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, plan);
  }
}

TEST(ParityPlans, AModelThatOneRankCannotHoldIsRefused) {
  run::Plan plan = on_one_rank(with_one_micro_batch(two_shapes(), 1));
  EXPECT_TRUE(check_memory(plan));
  plan.recipe.model.hidden_size = 1 << 16;
  plan.recipe.model.intermediate_size = 1 << 18;
  plan.recipe.model.num_hidden_layers = 400;
  const Status status = check_memory(plan);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::kNothingFits);
  EXPECT_NE(status.error().hint.find("num_hidden_layers"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::parity
