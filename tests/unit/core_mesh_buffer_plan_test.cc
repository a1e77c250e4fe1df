#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "core/mesh/buffer_plan.h"
#include "core/mesh/unit.h"

namespace ptrain::mesh {
namespace {

using model::BlockKind;
using model::ParameterSpec;

ParameterSpec parameter(std::vector<std::int64_t> shape, BlockKind block = BlockKind::kElement,
                        int group = 0) {
  ParameterSpec spec;
  spec.shape = std::move(shape);
  spec.block = block;
  spec.group = group;
  return spec;
}

std::vector<std::int64_t> offsets(const BufferPlan& plan) {
  std::vector<std::int64_t> result;
  for (const ParameterPlacement& placement : plan.placements) result.push_back(placement.offset);
  return result;
}

bool gap_allowed(const ParameterSpec& before, const ParameterSpec& after) {
  return after.block != BlockKind::kRow || before.block_elements() != after.block_elements();
}

bool splits_block(std::int64_t start, const ParameterSpec& spec, std::int64_t size) {
  for (std::int64_t at = start + 1; at < start + spec.num_elements(); ++at) {
    if (at % size == 0 && (at - start) % spec.block_elements() != 0) return true;
  }
  return false;
}

using Failed = std::set<std::pair<std::size_t, std::int64_t>>;

// Tries every start of every parameter: the slow truth about one shard size.
bool fits(const std::vector<ParameterSpec>& specs, std::size_t index, std::int64_t cursor,
          std::int64_t size, int num_ranks, Failed& failed) {
  if (index == specs.size()) return true;
  if (failed.contains({index, cursor})) return false;
  const bool glued = index > 0 && !gap_allowed(specs[index - 1], specs[index]);
  const std::int64_t elements = specs[index].num_elements();
  const std::int64_t last = glued ? cursor : size * num_ranks;
  for (std::int64_t at = cursor; at <= last && at + elements <= size * num_ranks; ++at) {
    if (splits_block(at, specs[index], size)) continue;
    if (fits(specs, index + 1, at + elements, size, num_ranks, failed)) return true;
  }
  failed.insert({index, cursor});
  return false;
}

std::int64_t smallest_size_by_trial(const std::vector<ParameterSpec>& specs, int num_ranks) {
  for (std::int64_t size = 1;; ++size) {
    Failed failed;
    if (fits(specs, 0, 0, size, num_ranks, failed)) return size;
  }
}

std::vector<ParameterSpec> any_parameters() {
  const int count = *rc::gen::inRange(1, 7);
  std::vector<ParameterSpec> specs;
  for (int i = 0; i < count; ++i) {
    const auto block = *rc::gen::element(BlockKind::kElement, BlockKind::kRun, BlockKind::kRow,
                                         BlockKind::kMatrix);
    const std::int64_t rows = *rc::gen::inRange(1, 9);
    const std::int64_t columns = *rc::gen::inRange(1, 9);
    const bool vector = *rc::gen::inRange(0, 4) == 0;
    specs.push_back(vector ? parameter({columns}, block) : parameter({rows, columns}, block));
  }
  return specs;
}

TEST(BufferPlan, OneRankHasNoPadding) {
  const std::vector<ParameterSpec> specs{parameter({3, 5}, BlockKind::kRow), parameter({7}),
                                         parameter({2, 2}, BlockKind::kMatrix)};
  const BufferPlan plan = plan_buffer(specs, 0, 1);
  EXPECT_EQ(plan.shard_sizes, std::vector<std::int64_t>{26});
  EXPECT_EQ(offsets(plan), (std::vector<std::int64_t>{0, 15, 22}));
  EXPECT_EQ(plan.padding(), 0);
}

TEST(BufferPlan, ElementsAreCutAnywhere) {
  const std::vector<ParameterSpec> specs{parameter({4, 4}), parameter({3})};
  const BufferPlan plan = plan_buffer(specs, 0, 3);  // 19 elements: 7 each, 2 of padding
  EXPECT_EQ(plan.shard_sizes, (std::vector<std::int64_t>{7, 7, 7}));
  EXPECT_EQ(plan.padding(), 2);
  EXPECT_EQ(plan.runs(1), (std::vector<ShardRun>{{0, 7, 14, 0}}));
  EXPECT_EQ(plan.runs(2), (std::vector<ShardRun>{{0, 14, 16, 0}, {1, 0, 3, 2}}));
}

// Row starts 0 and 5: with shards of 11 the second would be cut at 11 = 5 + 6 of 8; 12 = 5 + 7 is
// no better, 13 = 5 + 8 is the first in whole rows.
TEST(BufferPlan, RowsMoveTheBoundary) {
  const std::vector<ParameterSpec> specs{parameter({5}), parameter({2, 8}, BlockKind::kRow)};
  const BufferPlan plan = plan_buffer(specs, 0, 2);
  EXPECT_EQ(plan.shard_sizes, (std::vector<std::int64_t>{13, 13}));
  EXPECT_EQ(offsets(plan), (std::vector<std::int64_t>{0, 5}));
}

// 6 + 5 + 15 elements on 2 ranks: shards of 13 and 14 cut a row of 5, and moving the last matrix to
// the boundary does not help; at 15 it starts on the boundary, behind a gap of 4, and fits exactly.
TEST(BufferPlan, RowsStartOnTheBoundary) {
  const std::vector<ParameterSpec> specs{parameter({2, 3}, BlockKind::kRow), parameter({5}),
                                         parameter({3, 5}, BlockKind::kRow)};
  const BufferPlan plan = plan_buffer(specs, 0, 2);
  EXPECT_EQ(plan.shard_sizes, (std::vector<std::int64_t>{15, 15}));
  EXPECT_EQ(offsets(plan), (std::vector<std::int64_t>{0, 6, 15}));
}

TEST(BufferPlan, MatricesAreKeptWhole) {
  const auto matrix = [](std::int64_t n) { return parameter({1, n}, BlockKind::kMatrix); };
  const std::vector<ParameterSpec> specs{matrix(6), matrix(5), matrix(4)};
  const BufferPlan plan = plan_buffer(specs, 0, 2);  // 6 | 5 + 4
  EXPECT_EQ(plan.shard_sizes, (std::vector<std::int64_t>{9, 9}));
  EXPECT_EQ(offsets(plan), (std::vector<std::int64_t>{0, 9, 14}));
}

TEST(BufferPlan, MoreRanksThanRows) {
  const std::vector<ParameterSpec> specs{parameter({2, 10}, BlockKind::kRow)};
  const BufferPlan plan = plan_buffer(specs, 0, 5);
  EXPECT_EQ(plan.shard_sizes, std::vector<std::int64_t>(5, 10));
  EXPECT_EQ(plan.runs(1).size(), 1u);
  EXPECT_TRUE(plan.runs(2).empty());
  EXPECT_EQ(plan.padding(), 30);
}

// The example that Megatron-FSDP documents for its buffers: chunks of 12 for 5 ranks.
TEST(BufferPlan, MegatronExample) {
  std::vector<ParameterSpec> specs;
  for (const auto& shape :
       std::vector<std::vector<std::int64_t>>{{2, 6}, {4, 4}, {4, 4}, {1, 2}, {1, 6}}) {
    specs.push_back(parameter(shape, BlockKind::kRow));
  }
  const BufferPlan plan = plan_buffer(specs, 0, 5);
  EXPECT_EQ(plan.shard_sizes, std::vector<std::int64_t>(5, 12));
  EXPECT_EQ(plan.total(), 60);
}

TEST(BufferPlan, OnlyItsGroup) {
  const std::vector<ParameterSpec> specs{parameter({4}), parameter({6}, BlockKind::kElement, 1),
                                         parameter({5})};
  const BufferPlan plan = plan_buffer(specs, 0, 1);
  ASSERT_EQ(plan.placements.size(), 2u);
  EXPECT_EQ(plan.placements[1], (ParameterPlacement{2, 4, 5}));
  EXPECT_EQ(plan_buffer(specs, 1, 1).total(), 6);
  EXPECT_EQ(plan_buffer(specs, 2, 3).total(), 0);
}

// A block of a real size: no search may be felt, nothing may lie between query, key and value.
TEST(BufferPlan, LlamaRowsOnManyRanks) {
  recipe::Model config;
  config.hidden_size = 2880, config.intermediate_size = 4096, config.num_hidden_layers = 1;
  config.num_attention_heads = 45, config.num_key_value_heads = 5, config.head_dim = 64;
  config.vocab_size = 4096;
  model::Architecture architecture = *model::make_architecture(config, DType::kFloat32);
  for (ParameterSpec& spec : architecture.parameters) spec.block = BlockKind::kRow;
  for (int ranks : {2, 3, 5, 8, 64, 512}) {
    const BufferPlan plan = plan_buffers(architecture, ranks)[1];
    std::map<std::string, ParameterPlacement> places;
    for (const auto& place : plan.placements)
      places[architecture.parameters[static_cast<std::size_t>(place.parameter)].name] = place;
    const auto follows = [&](const std::string& before, const std::string& after) {
      const auto& first = places.at("model.layers.0." + before + "_proj.weight");
      const auto& second = places.at("model.layers.0." + after + "_proj.weight");
      EXPECT_EQ(first.offset + first.elements, second.offset) << after << " on " << ranks;
    };
    follows("self_attn.q", "self_attn.k");
    follows("self_attn.k", "self_attn.v");
    follows("mlp.gate", "mlp.up");
    EXPECT_LT(plan.padding(), plan.total() / 2) << ranks;
  }
}

// Never larger than the best in the order given, and never smaller than anything can be.
RC_GTEST_PROP(BufferPlan, ShardsAreSmall, ()) {
  const std::vector<ParameterSpec> specs = any_parameters();
  const int ranks = *rc::gen::inRange(1, 9);
  const BufferPlan plan = plan_buffer(specs, 0, ranks);
  const std::int64_t size = plan.shard_sizes.front();
  RC_ASSERT(plan.shard_sizes == std::vector<std::int64_t>(static_cast<std::size_t>(ranks), size));
  RC_ASSERT(size <= smallest_size_by_trial(specs, ranks));
  std::vector<Unit> units;
  for (const ParameterSpec& spec : specs)
    units.push_back({spec.num_elements(), spec.block_elements()});
  RC_ASSERT(size >= least_size(units, ranks));
}

RC_GTEST_PROP(BufferPlan, RunsCoverEachParameterOnceInWholeBlocks, ()) {
  const std::vector<ParameterSpec> specs = any_parameters();
  const int ranks = *rc::gen::element(1, 2, 3, 5, 8, 40);
  const BufferPlan plan = plan_buffer(specs, 0, ranks);
  std::vector<std::int64_t> covered(specs.size());
  std::vector<std::int64_t> offsets(specs.size());
  for (const ParameterPlacement& place : plan.placements)
    offsets[static_cast<std::size_t>(place.parameter)] = place.offset;
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t end_in_shard = 0;
    for (const ShardRun& run : plan.runs(rank)) {
      const auto index = static_cast<std::size_t>(run.parameter);
      RC_ASSERT(run.begin == covered[index]);
      RC_ASSERT(run.begin % specs[index].block_elements() == 0);
      RC_ASSERT(run.end % specs[index].block_elements() == 0 ||
                run.end == specs[index].num_elements());
      RC_ASSERT(run.shard_offset >= end_in_shard);
      RC_ASSERT(plan.shard_offset(rank) + run.shard_offset == offsets[index] + run.begin);
      covered[index] = run.end;
      end_in_shard = run.shard_offset + run.end - run.begin;
    }
    RC_ASSERT(end_in_shard <= plan.shard_sizes[static_cast<std::size_t>(rank)]);
  }
  for (std::size_t i = 0; i < specs.size(); ++i) RC_ASSERT(covered[i] == specs[i].num_elements());
}

}  // namespace
}  // namespace ptrain::mesh
