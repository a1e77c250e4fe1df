// When a plan offloads optimizer state, and what it says that costs.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "launcher/plan/cost/action_cost.h"
#include "launcher/plan/evaluate.h"
#include "launcher/plan/plan.h"
#include "launcher/plan/report.h"
#include "launcher/plan/simulate.h"
#include "tests/support/simulated.h"

namespace ptrain::plan {
namespace {

using program::Action;
using program::Kind;
using program::Lane;
using recipe::Offload;
using support::action;
using support::exposed;

constexpr std::int64_t kMib = std::int64_t{1} << 20;

// Sixteen blocks of 3.1 million parameters, one rank: 390 MiB of moments, of which a ring takes 49.
PlanInput input_with(std::int64_t memory_mib, std::optional<Offload> offload = std::nullopt) {
  PlanInput input;
  recipe::Recipe& recipe = input.recipe;
  recipe.name = "large";
  recipe.model.hidden_size = 512;
  recipe.model.intermediate_size = 1365;
  recipe.model.num_hidden_layers = 16;
  recipe.model.num_attention_heads = 8;
  recipe.model.vocab_size = 320;
  recipe::Shape shape;
  shape.name = "only";
  shape.sequence = 32;
  shape.global_batch_tokens = 64;
  shape.steps = 1;
  recipe.shapes = {shape};
  recipe.parallel.offload = offload;
  input.cluster = {"machine",
                   {{"n", 1, memory_mib * kMib}},
                   cluster::default_figures(),
                   cluster::default_link()};
  input.cluster.figures.assumed = false;
  return input;
}

std::int64_t bytes_of(const Planning& planning) {
  return program::total_bytes(planning.plan.shapes[0].predicted.classes[0].bytes);
}

TEST(OffloadPlan, IsChosenWhereNothingElseFits) {
  const auto roomy = plan_recipe(input_with(4096));
  ASSERT_TRUE(roomy) << roomy.error().message;
  EXPECT_EQ(roomy->plan.shapes[0].layout.offload, Offload::kNone);
  for (const Candidate& one : roomy->rankings[0].ranked)
    EXPECT_EQ(one.layout.offload, Offload::kNone);

  const auto forced = plan_recipe(input_with(4096, Offload::kOptimizer));
  ASSERT_TRUE(forced) << forced.error().message;
  const std::int64_t saved = bytes_of(*roomy) - bytes_of(*forced);
  EXPECT_GT(saved, 330 * kMib);
  EXPECT_GT(forced->plan.shapes[0].predicted.step_s, roomy->plan.shapes[0].predicted.step_s);

  // Every layout needs more than the largest one does offloaded, but one MiB.
  const std::int64_t tight = bytes_of(*forced) / kMib + 1;
  const auto planned = plan_recipe(input_with(tight));
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->plan.shapes[0].layout.offload, Offload::kOptimizer);
  const auto& rejected = planned->plan.shapes[0].rejected;
  EXPECT_TRUE(std::ranges::any_of(
      rejected, [](const auto& one) { return one.reason.find("memory") != std::string::npos; }));
  EXPECT_TRUE(std::ranges::any_of(planned->notes, [](const auto& note) {
    return note.find("MiB of optimizer state a rank on the disk") != std::string::npos;
  })) << to_text(*planned, true);

  // One rank has one choice of degrees, which both searches look into, and so its count is one.
  const Ranking& ranking = planned->rankings[0];
  EXPECT_EQ(ranking.effort.num_degrees, 1);
  EXPECT_EQ(ranking.effort.num_degrees_opened, 1);
  std::map<std::string, int> seen;
  for (const auto& one : ranking.ranked) seen[mesh::to_string(one.layout)] += 1;
  for (const auto& one : ranking.rejected) seen[mesh::to_string(one.layout)] += 1;
  for (const auto& [name, count] : seen) EXPECT_EQ(count, 1) << name;

  const auto refused = plan_recipe(input_with(tight, Offload::kNone));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().hint.find("parallel.offload: optimizer"), std::string::npos)
      << refused.error().hint;
}

TEST(OffloadPlan, IsNotLookedIntoWhereMemoryIsNotWhatLacks) {
  PlanInput input = input_with(4096);
  input.recipe.parallel.head = recipe::Head::kAllStages;
  const auto refused = plan_recipe(input);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("offload"), std::string::npos) << refused.error().message;
}

// By hand, on one core: fetches 0-3 and 3-6, the norm (of the reduce lane, which takes the core)
// 0-2; the first update waits for its fetch, 3-4, and is written 6-8, since there is one disk; the
// second is 6-7 and is written 8-10. The core idles 1 + 2 waiting for fetches and 3 at the end.
TEST(OffloadPlan, CopiesRunBesideTheCoreOneAfterTheOther) {
  program::Program program;
  program.actions = {action(0, Lane::kCopyIn, Kind::kFetch),
                     action(1, Lane::kCopyIn, Kind::kFetch),
                     action(2, Lane::kReduce, Kind::kGradNorm),
                     action(3, Lane::kCompute, Kind::kOptimizer, {0, 2}),
                     action(4, Lane::kCopyOut, Kind::kOffload, {3}),
                     action(5, Lane::kCompute, Kind::kOptimizer, {1, 2}),
                     action(6, Lane::kCopyOut, Kind::kOffload, {5})};
  SimulateOptions options;
  options.serial = true;
  options.seconds = [](const Action& a, int) {
    return std::array{3.0, 3.0, 2.0, 1.0, 2.0, 1.0, 2.0}[static_cast<std::size_t>(a.id)];
  };
  const auto timeline = simulate(std::span(&program, 1), options);
  ASSERT_TRUE(timeline) << timeline.error().message;
  const RankTimeline& rank = timeline->ranks[0];
  EXPECT_EQ(rank.actions,
            (std::vector<Interval>{{0, 3}, {3, 6}, {0, 2}, {3, 4}, {6, 8}, {6, 7}, {8, 10}}));
  EXPECT_DOUBLE_EQ(exposed(rank, Lane::kCopyIn), 3);
  EXPECT_DOUBLE_EQ(exposed(rank, Lane::kCopyOut), 3);
  EXPECT_DOUBLE_EQ(exposed(rank, Lane::kReduce), 2);
  options.serial = false;
  EXPECT_EQ(simulate(std::span(&program, 1), options)->step_s, timeline->step_s);
}

// A matrix of 1000 elements over two ranks: 500 of 8 bytes each, one page of 4096 bytes.
TEST(OffloadPlan, SecondsFollowFromPagesAndTheDisk) {
  model::Architecture architecture;
  model::ParameterSpec parameter;
  parameter.shape = {10, 100};
  architecture.parameters = {parameter};
  architecture.layers = {{}};
  architecture.groups = {{0}};
  architecture.layers[0].groups = {0};
  architecture.layers[0].parameters = {0};
  mesh::Layout layout{.shard = 2, .offload = Offload::kOptimizer};
  const auto buffers = mesh::plan_buffers(architecture, 2);
  cluster::Figures figures = cluster::default_figures();
  figures.disk = {4096, 2048};
  const cluster::TransferCost link;
  const Placement placement{2, 2, 1, 1.0, false};
  const CostContext context{architecture, layout, buffers, figures, link, placement, 1, {}};
  Action copy = action(0, Lane::kCopyIn, Kind::kFetch);
  copy.group = 0;
  EXPECT_DOUBLE_EQ(action_seconds(copy, context), 1);
  copy.kind = Kind::kOffload;
  EXPECT_DOUBLE_EQ(action_seconds(copy, context), 2);
  EXPECT_EQ(term_of(Kind::kFetch), Term::kOffload);
  EXPECT_EQ(term_of(Kind::kOffload), Term::kOffload);
}

}  // namespace
}  // namespace ptrain::plan
