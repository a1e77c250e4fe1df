#include <gtest/gtest.h>

#include "launcher/plan/predicted_step.h"

namespace ptrain::plan {
namespace {

PlanInput two_ranks() {
  PlanInput input;
  input.recipe.name = "small";
  input.recipe.model.hidden_size = 64;
  input.recipe.model.intermediate_size = 128;
  input.recipe.model.num_hidden_layers = 2;
  input.recipe.model.num_attention_heads = 4;
  input.recipe.model.vocab_size = 320;
  recipe::Shape& shape = input.recipe.shapes.emplace_back();
  shape.name = "short";
  shape.sequence = 32;
  shape.global_batch_tokens = 32 * 4;
  shape.steps = 1;
  input.cluster = {"machine", {}, cluster::default_figures(), cluster::default_link()};
  input.cluster.nodes.assign(1, {"n", 2, std::int64_t{8} << 30});
  return input;
}

// The report shows it beside the plan's step time: they must be one prediction.
TEST(PredictedStep, EndsWhenThePlanSaid) {
  const PlanInput input = two_ranks();
  const auto planning = plan_recipe(input);
  ASSERT_TRUE(planning) << planning.error().message;
  const run::ShapePlan& shape = planning->plan.shapes.front();
  const auto step = predicted_step(input, shape);
  ASSERT_TRUE(step) << step.error().message;
  ASSERT_EQ(step->timeline.actions.size(), step->program.actions.size());
  double end_s = 0;
  for (const Interval& interval : step->timeline.actions) end_s = std::max(end_s, interval.end_s);
  EXPECT_DOUBLE_EQ(end_s, shape.predicted.step_s);
  EXPECT_EQ(program::class_hash(step->program), shape.predicted.classes.front().program_hash);
}

TEST(PredictedStep, AShapeThatIsNotInTheRecipeIsRefused) {
  run::ShapePlan other;
  other.name = "other";
  EXPECT_FALSE(predicted_step(two_ranks(), other));
}

}  // namespace
}  // namespace ptrain::plan
