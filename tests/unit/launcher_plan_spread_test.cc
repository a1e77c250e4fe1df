// A head or an embedding that all stages share: on the clock, in plans, and where it is refused.

#include <gtest/gtest.h>

#include "core/mesh/part.h"
#include "launcher/cluster/cluster.h"
#include "launcher/plan/enumerate.h"
#include "launcher/plan/evaluate.h"
#include "launcher/plan/least_bytes.h"
#include "launcher/plan/least_time.h"
#include "launcher/plan/parts.h"
#include "launcher/plan/stages.h"
#include "tests/support/small_llama.h"

namespace ptrain::plan {
namespace {

using program::Action;
using program::Kind;
using support::small_llama;

mesh::Layout pipeline(const char* schedule, int num_virtual) {
  mesh::Layout layout;
  layout.pp = 4;
  layout.num_virtual = num_virtual;
  layout.schedule = schedule;
  layout.num_micro_batches = 8;
  layout.spread_head = true;
  layout.stage_layers.assign(static_cast<std::size_t>(layout.num_stages()), 1);
  layout.stage_layers.front() = layout.stage_layers.back() = 2;
  return layout;
}

// One block a stage: F 1, B 2, I 1, W 1; an S costs 0.75, in three segments, on each rank.
double makespan(const char* schedule, int num_virtual) {
  const mesh::Layout layout = pipeline(schedule, num_virtual);
  const auto parts = *parts_of(small_llama(layout.num_stages()), layout);
  const auto programs = *compile_parts(parts, layout, "s");
  SimulateOptions options;
  options.seconds = [&](const Action& action, int) {
    const bool is_head = action.layer_first == layout.num_stages() + 1;
    if (is_head && action.kind == Kind::kForward) return 0.0;
    if (is_head && action.kind != Kind::kExchange) return 0.25;
    if (action.layer_first < 1 || action.kind == Kind::kExchange) return 0.0;
    return action.kind == Kind::kBackward ? 2.0 : 1.0;
  };
  options.members = [](const Action& action, int) {
    const bool all = action.kind == Kind::kGradNorm || action.attribute("axis") == "vocabulary";
    return all ? std::vector{0, 1, 2, 3} : std::vector<int>{};
  };
  return simulate(programs, options)->step_s;
}

// What is published for a head that costs nothing (launcher_plan_pipeline_test.cc), and eight S.
TEST(SpreadHeadClock, AddsWhatItCostsAndNoWaiting) {
  EXPECT_NEAR(makespan("gpipe", 1), 33 + 6, 1e-9);
  EXPECT_NEAR(makespan("eager_1f1b", 1), 33 + 6, 1e-9);
  EXPECT_NEAR(makespan("zb_h1", 1), 27 + 6, 1e-9);
  EXPECT_NEAR(makespan("interleaved_1f1b", 2), 57 + 6, 1e-9);
  EXPECT_NEAR(makespan("zb_v", 2), 51 + 6, 1e-9);
}

// A quarter of the matrix and of its work on each rank, the norm on the last.
TEST(SpreadHeadParts, ShareTheMatrixAndItsWork) {
  const auto whole = small_llama(4);
  const auto parts = *parts_of(whole, pipeline("1f1b", 1));
  const double flops = whole.layers.back().segments.back().flops_per_token;
  for (std::size_t place = 0; place < parts.size(); ++place) {
    const auto& head = parts[place].architecture.layers.back();
    EXPECT_EQ(head.segments.back().flops_per_token, flops / 4);
    EXPECT_EQ(parts[place].architecture.num_head_rows(), 16);
    EXPECT_EQ(head.parameters.size(), place == 3 ? 2u : 1u);
    EXPECT_EQ(head.stash.size(), place == 3 ? 1u : 0u);
  }
}

// A head that costs as much as all blocks leaves them unevenly dealt out, unless it is shared.
TEST(SpreadHeadParts, LeaveTheBlocksToTheStages) {
  const auto heavy = small_llama(8, false, 1200);
  EXPECT_EQ(balanced_stages(heavy, 4, 4)->back(), 1);
  EXPECT_EQ(*balanced_stages(heavy, 4, 4, {.head = true}), (std::vector<int>{3, 2, 2, 3}));
}

Space space_of(const model::Architecture& architecture, int pp) {
  Space space{4, 8, {}};
  space.fixed.automatic = false;
  space.fixed.pp = pp;
  space.fixed.tp = 1;
  space.fixed.head = recipe::Head::kAllStages;
  space.architecture = &architecture;
  space.sequence = 16;
  return space;
}

std::string refusal(const model::Architecture& architecture, int pp) {
  const Enumeration all = enumerate(space_of(architecture, pp));
  EXPECT_TRUE(all.legal.empty());
  for (const Rejected& rejected : all.rejected)
    if (rejected.layout.pp == pp &&
        rejected.reason == "embedding or head cannot be spread over all stages")
      return rejected.detail;
  return "";
}

TEST(SpreadHeadLayouts, AreLegalForAPipelineOfAModelWithAHeadOfItsOwn) {
  const auto architecture = small_llama(8);
  const Enumeration all = enumerate(space_of(architecture, 4));
  ASSERT_FALSE(all.legal.empty());
  for (const mesh::Layout& layout : all.legal) EXPECT_TRUE(layout.spread_head);
}

TEST(SpreadEmbeddingLayouts, AreLegalForTiedModelsBesideASpreadHead) {
  const auto tied = small_llama(8, true);
  Space space = space_of(tied, 4);
  space.fixed.embedding = recipe::Embedding::kAllStages;
  const Enumeration all = enumerate(space);
  ASSERT_FALSE(all.legal.empty());
  for (const mesh::Layout& layout : all.legal) {
    EXPECT_TRUE(layout.spread_embedding && layout.spread_head);
    EXPECT_GE(layout.stage_layers.front(), 2) << "the first stage has a block";
  }
}

// Of four layers that cost 0, 1, 1 and 0 any stage may be the one with two, for nothing.
TEST(SpreadEmbeddingLayouts, GiveTheFirstStageABlock) {
  EXPECT_EQ(*balanced_stages(small_llama(2), 4, 3, {.embedding = true, .head = true}),
            (std::vector<int>{2, 1, 1}));
  const auto refused = balanced_stages(small_llama(2), 4, 4, {.embedding = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint, "pp x virtual may be 3 at most");
}

TEST(SpreadHeadLayouts, SayWhyTheyCannotBe) {
  EXPECT_NE(refusal(small_llama(8), 1).find("pp is 1, so there is one rank of stages; leave it"),
            std::string::npos);
  EXPECT_NE(refusal(small_llama(8, true), 4).find("which the first stage holds whole"),
            std::string::npos);
}

void expect_bounds_hold(const SearchInput& input, const std::vector<mesh::Layout>& legal) {
  ASSERT_FALSE(legal.empty());
  Cuts cuts(sample_of(input.architecture));
  Pipelines pipelines(cuts.likes());
  LeastTime time(input, cuts, pipelines);
  LeastBytes bytes(input, cuts, pipelines);
  for (std::size_t i = 0; i < legal.size(); i += 1 + legal.size() / 50) {
    const auto candidate = evaluate(input, legal[i]);
    ASSERT_TRUE(candidate) << candidate.error().message;
    EXPECT_LE(time.of(legal[i]), candidate->predicted.step_s * (1 + 1e-9));
    EXPECT_LE(bytes.of(legal[i]), program::total_bytes(candidate->bytes));
  }
}

// On a node, where communication takes the core that computes, and on four, where it does not.
TEST(SpreadBounds, AreNeverAboveWhatIsSimulated) {
  const auto architecture = small_llama(6, false, 200);
  recipe::Shape shape;
  shape.name = "only";
  shape.sequence = 32;
  shape.global_batch_tokens = 8 * shape.sequence;
  for (const SpreadEnds spread : {SpreadEnds{false, true}, {true, false}, {true, true}})
    for (const int ranks_per_node : {4, 1}) {
      cluster::Cluster cluster{"nodes", {}, cluster::default_figures(), cluster::default_link()};
      cluster.nodes.assign(static_cast<std::size_t>(4 / ranks_per_node),
                           {"n", ranks_per_node, std::int64_t{1} << 33});
      const Placement placement{4, ranks_per_node, 1, 1.0, ranks_per_node == 1};
      Space space = space_of(architecture, 0);
      space.sequence = shape.sequence;
      if (!spread.head) space.fixed.head = recipe::Head::kLastStage;
      if (spread.embedding) space.fixed.embedding = recipe::Embedding::kAllStages;
      expect_bounds_hold({architecture, shape, space.fixed, cluster, placement, {0.02, 16.5}},
                         enumerate(space).legal);
    }
}

}  // namespace
}  // namespace ptrain::plan
