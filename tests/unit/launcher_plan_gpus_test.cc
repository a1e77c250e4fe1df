#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "launcher/plan/plan.h"
#include "tests/support/small_recipe.h"

namespace ptrain::plan {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

// 12 rows in a step.
PlanInput input_with(int gpus, int nodes = 1) {
  PlanInput input;
  input.recipe = support::small_recipe();
  input.recipe.cluster.nodes = nodes;
  input.cluster = {"gpus", {}, cluster::default_gpu_figures(), cluster::default_link()};
  input.cluster.nodes.assign(static_cast<std::size_t>(nodes), {"n", 3, kGib, gpus, 8 * kGib});
  return input;
}

TEST(Gpus, TakeOneRankEachAndAreNamedByTheirNumberOnTheNode) {
  const auto planning = plan_recipe(input_with(2, 2));
  ASSERT_TRUE(planning) << planning.error().message;
  const std::vector<run::RankPlace> wanted{
      {0, "n", 0, 0}, {1, "n", 1, 1}, {2, "n", 0, 0}, {3, "n", 1, 1}};
  EXPECT_EQ(planning->plan.ranks, wanted);
  EXPECT_EQ(planning->plan.shapes[0].threads, 1);
}

PlanInput over_data_ranks(PlanInput input) {
  recipe::Parallel& parallel = input.recipe.parallel;
  parallel.tp = parallel.pp = parallel.ring = parallel.ulysses = 1;
  return input;
}

// Ranks of one node share a window in host memory, but not on GPUs.
TEST(Gpus, MeetByMessages) {
  const auto planning = plan_recipe(over_data_ranks(input_with(4)));
  ASSERT_TRUE(planning) << planning.error().message;
  EXPECT_FALSE(planning->plan.shapes[0].layout.shared_window);
  EXPECT_TRUE(plan_recipe(over_data_ranks(input_with(0)))->plan.shapes[0].layout.shared_window);
}

TEST(Gpus, RunNoPipelines) {
  PlanInput input = input_with(2);
  input.recipe.parallel.pp = 2;
  const auto planning = plan_recipe(input);
  ASSERT_FALSE(planning);
  EXPECT_NE(planning.error().message.find("pp above 1 does not run on GPUs"), std::string::npos);
}

TEST(Gpus, GiveTheirOwnMemoryToARank) {
  PlanInput input = input_with(1);
  ASSERT_TRUE(plan_recipe(input));
  input.cluster.nodes[0].gpu_memory_bytes = kGib / 1024;
  EXPECT_EQ(plan_recipe(input).error().code, ExitCode::kNothingFits);
}

// A model of 1,475,840 parameters, whose two moments take 11.26 MiB.
PlanInput offloading(std::int64_t host_bytes) {
  PlanInput input = over_data_ranks(input_with(2));
  input.recipe.model.hidden_size = 256;
  input.recipe.model.intermediate_size = 512;
  input.recipe.model.num_hidden_layers = 2;
  input.recipe.parallel.dp = 2;
  input.recipe.parallel.shard = 1;
  input.recipe.parallel.offload = recipe::Offload::kOptimizer;
  input.cluster.nodes[0].memory_bytes = host_bytes;
  return input;
}

TEST(Gpus, OffloadToTheMemoryOfTheirNode) {
  const auto planning = plan_recipe(offloading(kGib));
  ASSERT_TRUE(planning) << planning.error().message;
  EXPECT_EQ(planning->plan.shapes[0].layout.offload, recipe::Offload::kOptimizer);
  EXPECT_TRUE(std::ranges::any_of(planning->notes, [](const auto& note) {
    return note.find("of optimizer state a rank in the memory of its node") != std::string::npos;
  }));
  // Two replicas, which a node has no room for.
  const auto refused = plan_recipe(offloading(kGib / 64));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kNothingFits);
  EXPECT_NE(refused.error().message.find("offloaded"), std::string::npos)
      << refused.error().message;
  // 2 x 11.26 MiB wait in 16. Ranks have memory enough.
  EXPECT_NE(refused.error().message.find("short by 7 MiB a node"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(refused.error().message.find("MiB a rank"), std::string::npos);
  EXPECT_NE(refused.error().hint.find("give the nodes more memory"), std::string::npos);
  EXPECT_EQ(refused.error().hint.find("give the ranks more memory"), std::string::npos);
}

TEST(Gpus, AreNotSharedAndNotMixedWithProcessors) {
  PlanInput crowded = input_with(2);
  crowded.recipe.cluster.ranks_per_node = 3;
  EXPECT_EQ(plan_recipe(crowded).error().code, ExitCode::kUsage);
  PlanInput mixed = input_with(2, 2);
  mixed.cluster.nodes[1].num_gpus = 0;
  EXPECT_EQ(plan_recipe(mixed).error().code, ExitCode::kUsage);
}

}  // namespace
}  // namespace ptrain::plan
