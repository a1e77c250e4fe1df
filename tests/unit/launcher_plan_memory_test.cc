// What memory of experts is planned for, and what else is told of it.
#include <gtest/gtest.h>

#include "core/mesh/part.h"
#include "launcher/plan/evaluate.h"
#include "launcher/plan/explain.h"
#include "launcher/plan/memory.h"
#include "launcher/plan/search.h"
#include "tests/support/small_model.h"

namespace ptrain::plan {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

// Eight experts, of which a token chooses two.
model::Architecture experts(double capacity = 0) {
  recipe::Model model = support::small_model("qwen3_moe");
  model.num_experts = 8;
  model.num_experts_per_tok = 2;
  model.expert_capacity_factor = capacity;
  return *model::make_architecture(model, DType::kFloat32);
}

// Rows of 32 tokens on four ranks that share the experts, two each: at most two choices of each of
// their 128 tokens come to one, 64 where choices are even.
TEST(ExpertRows, AreAMultipleOfAnEvenShareAndNeverMoreThanCanCome) {
  mesh::Layout layout{.shard = 4, .ep = 4};
  const auto part = *mesh::part_of(experts(), layout, 0);
  program::MemoryContext context{part, layout, {}, 32};
  EXPECT_EQ(program::expert_rows(context), 256);
  context.expert_load = 1;
  EXPECT_EQ(program::expert_rows(context), 64);
  context.expert_load = 1.5;
  EXPECT_EQ(program::expert_rows(context), 96);
  context.expert_load = 100;
  EXPECT_EQ(program::expert_rows(context), 256);
}

// The tokens, targets and positions of a step, 4 bytes each, which are packed before it begins.
TEST(RuntimeMemory, CountsTheRowsOfAStep) {
  const mesh::Layout small{.micro_batch = 2, .num_micro_batches = 3};
  mesh::Layout large = small;
  large.num_micro_batches = 1003;
  EXPECT_EQ(runtime_bytes(large, 100) - runtime_bytes(small, 100), 1000 * 2 * 100 * 3 * 4);
  large.cp = 2;  // and its half of them once more
  EXPECT_EQ(runtime_bytes(large, 100) - runtime_bytes(small, 100),
            1000 * 2 * 100 * 3 * 4 + 1003 * 2 * 50 * 3 * 4);
}

TEST(ExpertLoad, IsTheCapacityWhereThereIsOne) {
  EXPECT_EQ(expert_load(experts()), 1.5);
  EXPECT_EQ(expert_load(experts(1.25)), 1.25);
  const auto dense = model::make_architecture(support::small_model("llama"), DType::kFloat32);
  EXPECT_EQ(expert_load(*dense), 0);
}

// A ring of shards that share the experts: 256 rows may come for which 96 are planned, in each of
// the layers that have experts. Scratch differs as well, so no layout differs by less than the
// stash.
TEST(ExpertMemory, IsPlannedByTheLoadAndToldByTheBound) {
  recipe::Shape shape;
  shape.name = "only";
  shape.sequence = 32;
  shape.global_batch_tokens = 4 * 32;
  recipe::Parallel fixed;
  fixed.ep = fixed.shard = 4;
  fixed.zero = 1;
  fixed.recompute = recipe::Recompute::kNone;
  cluster::Cluster cluster{"n", {{"n", 4, 8 * kGib}}, cluster::default_figures(), {}};
  const Placement placement{4, 4, 1, 1.0, false};
  const auto architecture = experts();
  const SearchInput input{architecture, shape, fixed, cluster, placement, {0.02, 16.5}};
  std::int64_t row_bytes = 0;
  for (const auto& layer : architecture.layers)
    for (const auto& tensor : layer.stash)
      if (tensor.rows == model::StashRows::kExperts)
        row_bytes += tensor.elements_per_token * size_of(tensor.dtype);
  ASSERT_GT(row_bytes, 0);
  auto ranking = *search(input);
  ASSERT_FALSE(ranking.ranked.empty());
  const Candidate& first = ranking.ranked.front();
  EXPECT_GE(first.most_bytes - program::total_bytes(first.bytes), (256 - 96) * row_bytes);
  EXPECT_TRUE(experts_bound(ranking).starts_with("memory is planned for"));
  // What fits by the load does, though the bound is above what there is.
  cluster.nodes[0].memory_bytes = 4 * (first.most_bytes - 1);
  ranking = *search(input);
  ASSERT_FALSE(ranking.ranked.empty());
  EXPECT_TRUE(experts_bound(ranking).starts_with("warning: ")) << experts_bound(ranking);
}

}  // namespace
}  // namespace ptrain::plan
