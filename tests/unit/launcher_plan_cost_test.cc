#include <gtest/gtest.h>

#include "launcher/plan/cost/compute.h"
#include "launcher/plan/cost/network.h"

namespace ptrain::plan {
namespace {

using program::Action;
using program::Kind;

// A block of 1,000 FLOPs a token and 10 a pair, which keeps 8 floats, with 100 parameters; nothing
// else.
class CostTest : public ::testing::Test {
 protected:
  CostTest() {
    architecture.config.hidden_size = 2;
    architecture.config.vocab_size = 50;
    model::ParameterSpec parameter;
    parameter.shape = {10, 10};
    architecture.parameters = {parameter};
    model::LayerSpec layer;
    layer.parameters = {0};
    layer.stash = {{"x", 8, DType::kFloat32, true}};
    layer.segments = {{"all", 1000, 10}};
    architecture.layers = {layer};
    buffers = {{0, {50, 50}, {}}};
    layout.shard = 2;
    layout.micro_batch = 3;
    figures.matmul_float32 = 1e9;
    figures.matmul_float64 = 5e8;
    figures.memory_bytes_per_s = 1e8;
    figures.all_gather = {1e-3, 1e6};
    figures.reduce_scatter = {2e-3, 5e5};
    placement.num_ranks = 2;
    placement.ranks_per_node = 2;
  }
  CostContext context() const {
    return {architecture, layout, buffers, figures, link, placement, 7, 4.0};
  }
  static Action action(Kind kind) {
    Action out;
    out.kind = kind;
    out.group = 0;
    out.layer_first = out.layer_last = 0;
    return out;
  }

  model::Architecture architecture;
  mesh::Layout layout;
  std::vector<mesh::BufferPlan> buffers;
  cluster::Figures figures;
  cluster::TransferCost link{1e-2, 1e5};
  Placement placement;
};

// 21 tokens: 21,000 matmul FLOPs; 21 x 4 x 10 = 840 of attention; 21 x 2 x (32 + 8) = 1,680 bytes
// of activations and 400 of weights.
TEST_F(CostTest, ForwardByHand) {
  EXPECT_EQ(forward_work(context(), architecture.layers[0]), (LayerWork{21000, 840, 2080}));
  EXPECT_NEAR(compute_seconds(action(Kind::kForward), context()),
              1e-5 + 21e-6 + 840 / 0.1e9 + 2080 / 1e8, 1e-12);
}

// Twice the FLOPs, 840 x 2.5 of attention; 21 x 4 x 40 = 3,360 bytes of activations, weights read,
// gradients written; and read too where they add to earlier ones.
TEST_F(CostTest, BackwardByHand) {
  EXPECT_EQ(backward_work(context(), architecture.layers[0], false),
            (LayerWork{42000, 2100, 3360 + 800}));
  EXPECT_EQ(backward_work(context(), architecture.layers[0], true).bytes, 3360 + 1200);
}

TEST_F(CostTest, ThreadsSpeedUpTheArithmeticOnly) {
  placement.threads = 2;
  EXPECT_NEAR(compute_seconds(action(Kind::kForward), context()),
              1e-5 + 10.5e-6 + 420 / 0.1e9 + 2080 / 1e8, 1e-12);
}

// The rank holds 50 elements = 200 bytes, touched 7 times.
TEST_F(CostTest, OptimizerByHand) {
  EXPECT_NEAR(compute_seconds(action(Kind::kOptimizer), context()), 1e-5 + 1400 / 1e8, 1e-12);
}

// 400 bytes over 2 ranks: 200 received from one peer.
TEST_F(CostTest, CollectivesByHand) {
  EXPECT_NEAR(network_seconds(action(Kind::kUnshard), context()), 1e-3 + 200 / 1e6, 1e-12);
  EXPECT_NEAR(network_seconds(action(Kind::kReduceGrad), context()), 2e-3 + 200 / 5e5, 1e-12);
  EXPECT_EQ(network_seconds(action(Kind::kForward), context()), 0);
}

// dp 2 x shard 2 reduces 400 bytes over shard, then all-reduces 200 over dp.
TEST_F(CostTest, HybridReducesOverBothAxes) {
  layout.dp = 2;
  placement.num_ranks = placement.ranks_per_node = 4;
  const double over_shard = 2e-3 + 200 / 5e5;
  const double over_dp = 2e-3 + 100 / 5e5 + 1e-3 + 100 / 1e6;
  Action reduce = action(Kind::kReduceGrad);
  EXPECT_NEAR(network_seconds(reduce, context()), over_shard + over_dp, 1e-12);
  reduce.attributes = {{"axis", "dp"}};
  EXPECT_NEAR(network_seconds(reduce, context()), over_dp, 1e-12);
  reduce.attributes = {{"axis", "shard"}};
  EXPECT_NEAR(network_seconds(reduce, context()), over_shard, 1e-12);
}

// Two nodes of one rank: the link is slower than the memory: 1e-2 + 200 / 1e5.
TEST_F(CostTest, TheLinkCountsBetweenNodes) {
  placement.ranks_per_node = 1;
  EXPECT_NEAR(network_seconds(action(Kind::kUnshard), context()), 1e-2 + 200 / 1e5, 1e-12);
}

// 8 ranks on 2 nodes, dp 2 x shard 4: shard groups stay inside, dp groups do not; dp 4 x shard 2
// the same; with 3 ranks a node shard groups break.
TEST(Groups, SpanNodesWhereRanksSay) {
  mesh::Layout layout;
  layout.dp = 2;
  layout.shard = 4;
  EXPECT_EQ(group_of(layout, {8, 4}, Axis::kShard), (Group{4, false}));
  EXPECT_EQ(group_of(layout, {8, 4}, Axis::kDp), (Group{2, true}));
  EXPECT_EQ(group_of(layout, {8, 8}, Axis::kDp), (Group{2, false}));
  EXPECT_EQ(group_of(layout, {8, 4}, Axis::kWorld), (Group{8, true}));
  layout.dp = 3;
  layout.shard = 2;
  EXPECT_EQ(group_of(layout, {6, 3}, Axis::kShard), (Group{2, true}));
}

}  // namespace
}  // namespace ptrain::plan
