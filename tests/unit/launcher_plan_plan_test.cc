#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "launcher/plan/enumerate.h"
#include "launcher/plan/evaluate.h"
#include "launcher/plan/explain.h"
#include "launcher/plan/plan.h"
#include "tests/support/small_recipe.h"

namespace ptrain::plan {
namespace {

using support::small_recipe;

constexpr std::int64_t kGib = std::int64_t{1} << 30;

cluster::Cluster machine(int cores, std::int64_t memory = 8 * kGib, int nodes = 1) {
  cluster::Cluster out{"machine", {}, cluster::default_figures(), cluster::default_link()};
  out.nodes.assign(static_cast<std::size_t>(nodes), {"n", cores, memory});
  out.figures.assumed = false;
  return out;
}

PlanInput input_of(recipe::Recipe recipe, cluster::Cluster cluster) {
  PlanInput input;
  input.recipe = std::move(recipe);
  input.cluster = std::move(cluster);
  input.build = "build";
  return input;
}

TEST(Place, OneRankACoreWhereTheRowsDivide) {
  std::vector<std::string> notes;
  auto recipe = small_recipe();  // 12 rows
  EXPECT_EQ(place_ranks(recipe, machine(4), notes)->num_ranks, 4);
  EXPECT_TRUE(notes.empty());
  const auto five = place_ranks(recipe, machine(5), notes);
  EXPECT_EQ(five->num_ranks, 4);
  EXPECT_EQ(five->threads, 1);
  EXPECT_FALSE(five->overlaps);
  EXPECT_EQ(notes.size(), 1u);
  const auto eleven = place_ranks(recipe, machine(11), notes);
  EXPECT_EQ(eleven->num_ranks, 6);
  recipe.cluster.ranks_per_node = 8;
  const auto crowded = place_ranks(recipe, machine(2), notes);
  EXPECT_EQ(crowded->num_ranks, 8);
  EXPECT_EQ(crowded->slowdown, 4);
}

// 12 rows. Of 12 cores dp 3 x tp 2 takes 6 or 12; dp 4 x tp 2 divides only 8 of them.
TEST(Place, TakesAsManyRanksAsTheDegreesDivide) {
  std::vector<std::string> notes;
  auto recipe = small_recipe();
  recipe.parallel.tp = 2;
  recipe.parallel.dp = 3;
  EXPECT_EQ(place_ranks(recipe, machine(12), notes)->num_ranks, 12);
  recipe.parallel.dp = 4;
  EXPECT_EQ(place_ranks(recipe, machine(12), notes)->num_ranks, 8);
  recipe.parallel.dp = 0;
  recipe.parallel.pp = 4;  // more ranks than cores, as the recipe wants
  EXPECT_EQ(place_ranks(recipe, machine(2), notes)->num_ranks, 8);
}

TEST(Place, FollowsTheRecipe) {
  std::vector<std::string> notes;
  auto recipe = small_recipe();
  recipe.parallel.dp = 1;
  recipe.parallel.shard = 2;
  const auto placement = place_ranks(recipe, machine(8), notes);
  EXPECT_EQ(placement->num_ranks, 2);
  EXPECT_EQ(placement->threads, 4);
  recipe.cluster.nodes = 3;
  EXPECT_EQ(place_ranks(recipe, machine(8), notes).error().code, ExitCode::kUsage);
  EXPECT_EQ(place_ranks(recipe, machine(8, kGib, 3), notes).error().code, ExitCode::kUsage);
}

TEST(Plan, IsCompleteAndFullySimulated) {
  const auto input = input_of(small_recipe(), machine(2));
  const auto planning = plan_recipe(input);
  ASSERT_TRUE(planning) << planning.error().message;
  const auto& plan = planning->plan;
  EXPECT_EQ(plan.build, "build");
  EXPECT_EQ(plan.ranks.size(), 2u);
  EXPECT_EQ(plan.recipe.model.head_dim, 16);
  ASSERT_EQ(plan.shapes.size(), 1u);
  const auto& predicted = plan.shapes[0].predicted;
  EXPECT_GT(predicted.step_s, 0);
  EXPECT_LT(predicted.low_s, predicted.step_s);
  EXPECT_GT(predicted.high_s, predicted.step_s);
  EXPECT_DOUBLE_EQ(predicted.tokens_per_s, 384 / predicted.step_s);
  EXPECT_GT(predicted.mfu, 0);
  EXPECT_LT(predicted.mfu, 1);
  ASSERT_EQ(predicted.classes.size(), 1u);
  EXPECT_EQ(predicted.classes[0].count, 2);
  EXPECT_FALSE(predicted.classes[0].program_hash.empty());
  EXPECT_EQ(plan, plan_recipe(input)->plan);
}

// Two ranks on one node, 12 rows: there are dp 2, shard 2, tp 2, pp 2, a ring of 2 and two Ulysses
// ranks. What is not ranked does not fit, or is slower than the first.
TEST(Plan, EveryLayoutIsRankedOrTooLargeOrSlower) {
  for (const std::int64_t memory : {8 * kGib, 304 * (kGib >> 10)}) {
    auto recipe = small_recipe();
    const Placement placement{2, 2, 1, 1.0, false};
    const auto cluster = machine(2, memory);
    const auto architecture = model::make_architecture(recipe.model, DType::kFloat32);
    const SearchInput input{*architecture, recipe.shapes[0], recipe.parallel,
                            cluster,       placement,        {0.02, 16.5}};
    const auto ranking = search(input);
    ASSERT_TRUE(ranking);
    EXPECT_EQ(ranking->effort.num_degrees, 6);
    EXPECT_EQ(ranking->effort.num_left, 0);
    std::map<std::string, int> seen;
    for (const auto& one : ranking->ranked) seen[name_of(one.layout)] += 1;
    EXPECT_EQ(ranking->ranked.size(), seen.size());
    Space space{2, 12, recipe.parallel};
    space.shared_window = true;
    space.architecture = &*architecture;
    space.sequence = 32;
    ASSERT_FALSE(ranking->ranked.empty());
    const double first_s = ranking->ranked.front().predicted.step_s;
    for (const mesh::Layout& layout : enumerate(space).legal) {
      if (seen.contains(name_of(layout))) continue;
      const auto candidate = evaluate(input, layout);
      ASSERT_TRUE(candidate) << candidate.error().message;
      EXPECT_TRUE(program::total_bytes(candidate->bytes) > rank_memory(input) ||
                  candidate->predicted.step_s > first_s)
          << name_of(layout);
    }
  }
}

TEST(Plan, ALongerStepIsCarriedOnInAStraightLine) {
  auto recipe = small_recipe();
  const Placement placement{1, 1, 1, 1.0, false};
  const auto cluster = machine(1);
  const auto architecture = model::make_architecture(recipe.model, DType::kFloat32);
  const SearchInput input{*architecture, recipe.shapes[0], recipe.parallel,
                          cluster,       placement,        {0.02, 16.5}};
  mesh::Layout layout;
  const auto step = [&](std::int64_t num_micro_batches) {
    layout.num_micro_batches = num_micro_batches;
    return evaluate(input, layout)->predicted.step_s;
  };
  // 3 and 4 are simulated whole, 12 is carried on; one more micro-batch always costs the same.
  EXPECT_NEAR(step(12), step(4) + 8 * (step(4) - step(3)), 1e-9);
  EXPECT_NEAR(step(4) - step(3), step(3) - step(2), 1e-9);
}

// Two ranks of 145 MiB, which libraries alone take. Of all layouts that are compiled one by
// one, the nearest needs least.
TEST(Plan, NothingFitsNamesTheLayoutThatNeedsLeast) {
  const auto recipe = small_recipe();
  const auto cluster = machine(2, 290 << 20);
  const Placement placement{2, 2, 1, 1.0, false};
  const auto architecture = model::make_architecture(recipe.model, DType::kFloat32);
  const SearchInput input{*architecture, recipe.shapes[0], recipe.parallel,
                          cluster,       placement,        {0.02, 16.5}};
  std::int64_t least = kGib;
  for (const auto offload : {recipe::Offload::kNone, recipe::Offload::kOptimizer}) {
    Space space{2, 12, recipe.parallel};
    space.shared_window = true;
    space.offload = offload;
    space.architecture = &*architecture;
    space.sequence = 32;
    for (const mesh::Layout& layout : enumerate(space).legal)
      least = std::min(least, program::total_bytes(evaluate(input, layout)->bytes));
  }
  const auto planning = plan_recipe(input_of(recipe, cluster));
  ASSERT_FALSE(planning);
  EXPECT_EQ(planning.error().code, ExitCode::kNothingFits);
  constexpr double kMib = 1 << 20;
  const double needed = static_cast<double>(least) / kMib;
  const std::string nearest = fmt::format(": needs {:.0f} MiB a rank of 145)", needed);
  const std::string missing = fmt::format("short by {:.0f} MiB a rank", std::ceil(needed - 145));
  EXPECT_NE(planning.error().message.find(nearest), std::string::npos) << nearest;
  EXPECT_NE(planning.error().message.find(missing), std::string::npos) << missing;
  EXPECT_FALSE(planning.error().hint.empty());
  if (HasFailure()) std::puts(planning.error().message.c_str());
}

// One rank, one row a micro-batch, nothing computed again: there is one layout, and 5 MiB less than
// it needs are 5 MiB short.
TEST(Plan, NothingFitsSaysHowMuchIsShort) {
  auto recipe = small_recipe();
  recipe.parallel.micro_batch = 1;
  recipe.parallel.recompute = recipe::Recompute::kNone;
  recipe.parallel.offload = recipe::Offload::kNone;
  const auto rich = plan_recipe(input_of(recipe, machine(1)));
  ASSERT_TRUE(rich) << rich.error().message;
  ASSERT_EQ(rich->rankings[0].ranked.size(), 1U);
  const std::int64_t needed = program::total_bytes(rich->rankings[0].ranked[0].bytes);
  const auto planning = plan_recipe(input_of(recipe, machine(1, needed - (5 << 20))));
  ASSERT_FALSE(planning);
  EXPECT_NE(planning.error().message.find("short by 5 MiB a rank"), std::string::npos)
      << planning.error().message;
  EXPECT_TRUE(plan_recipe(input_of(recipe, machine(1, needed))));
}

// A million micro-batches on one rank: about ten actions each.
TEST(Plan, ProgramsThatAreTooLongAreRefused) {
  auto recipe = small_recipe();
  recipe.parallel.micro_batch = 1;
  recipe.shapes[0].global_batch_tokens = 32 * std::int64_t{1'000'000};
  const auto planning = plan_recipe(input_of(recipe, machine(1)));
  ASSERT_FALSE(planning);
  EXPECT_NE(planning.error().message.find("programs that are longer than can be compiled"),
            std::string::npos)
      << planning.error().message;
}

TEST(Plan, RowsThatCannotBeSharedAreExplained) {
  auto recipe = small_recipe();
  recipe.cluster.ranks_per_node = 5;
  const auto planning = plan_recipe(input_of(recipe, machine(8)));
  ASSERT_FALSE(planning);
  EXPECT_EQ(planning.error().code, ExitCode::kNothingFits);
  EXPECT_NE(planning.error().hint.find("12 rows"), std::string::npos) << planning.error().hint;
}

// Two ranks: what asks for a pipeline leaves room for no other axis.
TEST(Plan, APipelineWithoutRanksIsRefused) {
  const auto refusal = [](int dp, int num_cores, auto&& ask) {
    auto recipe = small_recipe();
    recipe.parallel.dp = dp;
    recipe.cluster.ranks_per_node = num_cores;
    ask(recipe.parallel);
    const auto planned = plan_recipe(input_of(recipe, machine(num_cores)));
    EXPECT_TRUE(planned || planned.error().code == ExitCode::kUsage);
    return planned ? "" : planned.error().message;
  };
  const auto embedding = [](recipe::Parallel& parallel) {
    parallel.embedding = recipe::Embedding::kAllStages;
  };
  EXPECT_EQ(refusal(2, 2, embedding),
            "shape 'short': parallel.embedding: all_stages needs a pp of 2 or more, but dp 2 takes "
            "the 2 ranks of this run");
  EXPECT_EQ(refusal(2, 2, [](recipe::Parallel& parallel) { parallel.schedule = "1f1b"; }),
            "shape 'short': parallel.schedule needs a pp of 2 or more, but dp 2 takes the 2 ranks "
            "of this run");
  EXPECT_EQ(refusal(0, 1, embedding),
            "shape 'short': parallel.embedding: all_stages needs a pp of 2 or more, but this run "
            "has one rank");
  EXPECT_EQ(refusal(2, 4, embedding), "");
  EXPECT_EQ(refusal(2, 2, [](recipe::Parallel&) {}), "");
}

TEST(Plan, LessMemoryNeverAddsLayouts) {
  auto recipe = small_recipe();
  std::size_t before = 1000;
  for (const std::int64_t mib : {2048, 310, 304, 300, 296}) {
    const auto planning = plan_recipe(input_of(recipe, machine(2, mib << 20)));
    const std::size_t now = planning ? planning->rankings[0].ranked.size() : 0;
    EXPECT_LE(now, before);
    before = now;
  }
}

TEST(Plan, AssumedFiguresAreSaid) {
  auto cluster = machine(2);
  cluster.figures.assumed = true;
  const auto planning = plan_recipe(input_of(small_recipe(), cluster));
  ASSERT_EQ(planning->notes.size(), 1u);
  EXPECT_NE(planning->notes[0].find("assumed"), std::string::npos);
}

// A measured processor where bf16 gains little; never one that was not measured.
TEST(Plan, SlowBFloat16IsSaid) {
  auto cluster = machine(2);
  cluster.figures.matmul_float32 = 1e11;
  cluster.figures.matmul_bfloat16 = 6e10;
  auto recipe = small_recipe();
  EXPECT_TRUE(plan_recipe(input_of(recipe, cluster))->notes.empty());
  recipe.precision = recipe::Precision::kBFloat16;
  const auto planning = plan_recipe(input_of(recipe, cluster));
  ASSERT_EQ(planning->notes.size(), 1u);
  EXPECT_NE(planning->notes[0].find("bf16 at 60 GFLOP/s a core and fp32 at 100: `precision: fp32`"),
            std::string::npos)
      << planning->notes[0];
  cluster.figures.matmul_bfloat16 = 4e11;
  const auto fast = plan_recipe(input_of(recipe, cluster));
  EXPECT_TRUE(fast->notes.empty());
  EXPECT_EQ(fast->plan.peak_flops_per_rank, 4e11);
}

// Faster matmuls, memory or collectives never make any layout slower.
RC_GTEST_PROP(PlanProperties, BetterMachinesAreNeverSlower, ()) {
  const auto recipe = small_recipe();
  auto slow = machine(4);
  auto fast = slow;
  const auto faster = [] { return 1.0 + *rc::gen::inRange(0, 100) / 10.0; };
  fast.figures.matmul_float32 *= faster();
  fast.figures.memory_bytes_per_s *= faster();
  fast.figures.all_gather.bytes_per_s *= faster();
  fast.figures.reduce_scatter.latency_s /= faster();
  std::map<std::string, double> slow_steps;
  const auto before = plan_recipe(input_of(recipe, slow));
  const auto after = plan_recipe(input_of(recipe, fast));
  for (const auto& one : before->rankings[0].ranked)
    slow_steps[name_of(one.layout)] = one.predicted.step_s;
  for (const auto& one : after->rankings[0].ranked)  // the slow machine may rule it out unsimulated
    if (const auto slower = slow_steps.find(name_of(one.layout)); slower != slow_steps.end())
      RC_ASSERT(one.predicted.step_s <= slower->second * (1 + 1e-12));
}

}  // namespace
}  // namespace ptrain::plan
