#include <gtest/gtest.h>

#include "launcher/plan/cost/compute.h"
#include "launcher/plan/cost/network.h"

namespace ptrain::plan {
namespace {

using program::Action;
using program::Kind;

// A block of two heads of 4, 2 x 16 x 16 FLOPs a token (so 16 wide), which keeps 8 floats, with 100
// parameters; nothing else. A layout with 21 tokens a micro-batch.
class CostTest : public ::testing::Test {
 protected:
  CostTest() {
    architecture.config.hidden_size = 2;
    architecture.config.num_attention_heads = 2;
    architecture.config.head_dim = 4;
    model::ParameterSpec parameter;
    parameter.shape = {10, 10};
    architecture.parameters = {parameter};
    model::LayerSpec layer;
    layer.parameters = {0};
    layer.stash = {{"x", 8, DType::kFloat32, model::StashClass::kInput}};
    layer.segments = {{"all", 512, 10}};
    architecture.layers = {layer};
    architecture.groups = {{0}};
    buffers = {{0, {50, 50}, {}}};
    layout.shard = 2;
    layout.micro_batch = 3;
    figures.matmul_float32 = 1e9;
    figures.matmul_float64 = 5e8;
    figures.matmul_shares = {{8, 0.25, 0.5}, {32, 0.75, 1}};
    figures.attention = {64, {1e-6, 1e-8, 2e-9}, {2e-6, 3e-8, 4e-9}};
    figures.kept_bytes_per_s = {1e7, 5e6};
    figures.memory_bytes_per_s = 1e8;
    figures.adamw_parameters_per_s = 1e6;
    figures.cross_entropy_logits_per_s = 1e7;
    figures.all_gather = {1e-3, 1e6};
    figures.reduce_scatter = {2e-3, 5e5};
    figures.window = {3e-3, 2e6};
    placement.num_ranks = 2;
    placement.ranks_per_node = 2;
  }
  CostContext context() const {
    return {architecture, layout, buffers, figures, link, placement, 7, {0.1, 4.0}};
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

// 16 lies in the middle between 8 and 32 on a logarithmic scale.
TEST_F(CostTest, SharesLieBetweenTheMeasuredWidths) {
  EXPECT_NEAR(share_at(figures.matmul_shares, 16).forward, 0.5, 1e-12);
  EXPECT_NEAR(share_at(figures.matmul_shares, 16).backward, 0.75, 1e-12);
  EXPECT_EQ(share_at(figures.matmul_shares, 1).forward, 0.25);
  EXPECT_EQ(share_at(figures.matmul_shares, 8).forward, 0.25);
  EXPECT_EQ(share_at(figures.matmul_shares, 1e6).backward, 1);
}

// Products: 21 x 512 FLOPs at half of 1e9. A head of a token: 0.1 blocks and 4 pairs. Kept: 21 x 32
// bytes.
TEST_F(CostTest, ForwardByHand) {
  const auto seconds = forward_seconds(context(), architecture.layers[0]);
  EXPECT_NEAR(seconds.matmul_s, 21 * 512 / 0.5e9, 1e-15);
  EXPECT_NEAR(seconds.attention_s, 21 * 2 * (0.1 * 1e-6 + 4 * (1e-8 + 4 * 2e-9)), 1e-15);
  EXPECT_NEAR(seconds.kept_s, 21 * 32 / 1e7, 1e-15);
  EXPECT_EQ(seconds.loss_s, 0);
  EXPECT_NEAR(compute_seconds(action(Kind::kForward), context()), 1e-5 + 1.3 * seconds.total(),
              1e-15);
}

// What is made again costs three times what its 21 x 20 bytes do among the other tensors of a
// forward.
TEST_F(CostTest, RecomputationByHand) {
  architecture.layers[0].stash.push_back({"up", 7, DType::kFloat32});
  architecture.layers[0].stash.push_back({"norm", 5, DType::kFloat32, model::StashClass::kRemade});
  Action full = action(Kind::kRecompute), selective = full;
  full.attributes = {{"from", "input"}};
  selective.attributes = {{"from", "selected"}};
  EXPECT_EQ(compute_seconds(full, context()), compute_seconds(action(Kind::kForward), context()));
  EXPECT_NEAR(compute_seconds(selective, context()), 1e-5 + 1.3 * 3 * 21 * 20 / 1e7, 1e-15);
}

// Two products at three quarters of 1e9.
TEST_F(CostTest, BackwardByHand) {
  const auto seconds = backward_seconds(context(), architecture.layers[0]);
  EXPECT_NEAR(seconds.matmul_s, 2 * 21 * 512 / 0.75e9, 1e-15);
  EXPECT_NEAR(seconds.attention_s, 21 * 2 * (0.1 * 2e-6 + 4 * (3e-8 + 4 * 4e-9)), 1e-15);
  EXPECT_NEAR(seconds.kept_s, 21 * 32 / 5e6, 1e-15);
}

// Products at the rate of bfloat16 and its shares, 0.2 of 4e9, and attention at its own figures;
// what is added up stays fp32. A gather moves 2 bytes of 4.
TEST_F(CostTest, BFloat16SpeedsUpProductsAttentionAndGathersOnly) {
  const auto before = forward_seconds(context(), architecture.layers[0]);
  const auto back = backward_seconds(context(), architecture.layers[0]);
  layout.zero = 3;
  const double gather = network_seconds(action(Kind::kUnshard), context());
  const double reduce = network_seconds(action(Kind::kReduceGrad), context());
  for (auto& layer : architecture.layers) layer.compute_dtype = DType::kBFloat16;
  for (auto& group : architecture.groups) group.compute_dtype = DType::kBFloat16;
  figures.matmul_bfloat16 = 4e9;
  figures.matmul_shares_bfloat16 = {{8, 0.2, 0.2}};
  figures.attention_bfloat16 = {64, {1e-6, 1e-8, 1e-9}, {2e-6, 3e-8, 2e-9}};
  const auto seconds = forward_seconds(context(), architecture.layers[0]);
  EXPECT_NEAR(seconds.matmul_s, 21 * 512 / 0.8e9, 1e-15);
  EXPECT_NEAR(before.attention_s - seconds.attention_s, 21 * 2 * 4 * 4 * 1e-9, 1e-15);
  EXPECT_NEAR(back.attention_s - backward_seconds(context(), architecture.layers[0]).attention_s,
              21 * 2 * 4 * 4 * 2e-9, 1e-15);
  EXPECT_EQ(seconds.kept_s, before.kept_s);
  EXPECT_EQ(backward_seconds(context(), architecture.layers[0]).kept_s, back.kept_s);
  EXPECT_NEAR(gather - network_seconds(action(Kind::kUnshard), context()), 100 * 2 / 2 / 1e6,
              1e-12);
  EXPECT_EQ(network_seconds(action(Kind::kReduceGrad), context()), reduce);
}

// A head makes its three products and 21 x 50 logits in backward.
TEST_F(CostTest, TheHeadWorksInBackward) {
  auto head = architecture.layers[0];
  head.kind = model::LayerKind::kHead;
  head.segments = {{"logits", 512, 0}};
  architecture.parameters.front().shape = {50, 10};
  EXPECT_EQ(forward_seconds(context(), head).matmul_s, 0);
  const auto seconds = backward_seconds(context(), head);
  EXPECT_NEAR(seconds.matmul_s, 21 * 512 / 0.5e9 + 2 * 21 * 512 / 0.75e9, 1e-15);
  EXPECT_NEAR(seconds.loss_s, 21 * 50 / 1e7, 1e-15);
  EXPECT_EQ(seconds.attention_s, 0);
}

TEST_F(CostTest, ThreadsSpeedUpTheArithmeticOnly) {
  const auto one = forward_seconds(context(), architecture.layers[0]);
  placement.threads = 2;
  const auto two = forward_seconds(context(), architecture.layers[0]);
  EXPECT_NEAR(two.matmul_s, one.matmul_s / 2, 1e-15);
  EXPECT_NEAR(two.attention_s, one.attention_s / 2, 1e-15);
  EXPECT_EQ(two.kept_s, one.kept_s);
}

// The rank holds 50 elements.
TEST_F(CostTest, OptimizerByHand) {
  EXPECT_NEAR(compute_seconds(action(Kind::kOptimizer), context()), 1e-5 + 1.3 * 50 / 1e6, 1e-12);
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
  EXPECT_NEAR(network_seconds(action(Kind::kReduceGrad), context()), over_shard + over_dp, 1e-12);
  program::Action within_replica = action(Kind::kReduceGrad);
  within_replica.attributes = {{"axis", "shard"}};
  EXPECT_NEAR(network_seconds(within_replica, context()), over_shard, 1e-12);
}

// Nothing is gathered, and 200 of 400 bytes come from the peer.
TEST_F(CostTest, ASharedWindowGathersNothing) {
  layout.shared_window = true;
  EXPECT_NEAR(network_seconds(action(Kind::kUnshard), context()), 3e-3, 1e-12);
  EXPECT_NEAR(network_seconds(action(Kind::kReduceGrad), context()), 3e-3 + 200 / 2e6, 1e-12);
  layout.shard = 1;
  layout.dp = 2;
  EXPECT_NEAR(network_seconds(action(Kind::kReduceGrad), context()), 2 * (3e-3 + 200 / 2e6), 1e-12);
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
  EXPECT_EQ(group_of(layout, {8, 4}, MeshAxis::kShard), (Group{4, Level::kNode}));
  EXPECT_EQ(group_of(layout, {8, 4}, MeshAxis::kDp), (Group{2, Level::kNetwork}));
  EXPECT_EQ(group_of(layout, {8, 8}, MeshAxis::kDp), (Group{2, Level::kNode}));
  EXPECT_EQ(group_of(layout, {8, 4}, MeshAxis::kWorld), (Group{8, Level::kNetwork}));
  layout.shard = 2;
  layout.tp = 2;
  layout.pp = 2;
  EXPECT_EQ(group_of(layout, {16, 4}, MeshAxis::kTp), (Group{2, Level::kNode}));
  EXPECT_EQ(group_of(layout, {16, 4}, MeshAxis::kShard), (Group{2, Level::kNode}));
  EXPECT_EQ(group_of(layout, {16, 4}, MeshAxis::kDp), (Group{2, Level::kNetwork}));
  EXPECT_EQ(group_of(layout, {16, 8}, MeshAxis::kDp), (Group{2, Level::kNode}));
  EXPECT_EQ(group_of(layout, {16, 8}, MeshAxis::kPp), (Group{2, Level::kNetwork}));
  EXPECT_EQ(group_of(layout, {16, 8}, MeshAxis::kRing), (Group{1, Level::kNode}));
  layout.dp = layout.pp = 1;
  layout.cp = 4;
  layout.ulysses = 2;
  EXPECT_EQ(group_of(layout, {16, 4}, MeshAxis::kUlysses), (Group{2, Level::kNode}));
  EXPECT_EQ(group_of(layout, {16, 4}, MeshAxis::kRing), (Group{2, Level::kNetwork}));
  EXPECT_EQ(group_of(layout, {16, 8}, MeshAxis::kRing), (Group{2, Level::kNode}));
  EXPECT_EQ(group_of(layout, {16, 8}, MeshAxis::kShard), (Group{8, Level::kNetwork}));
  layout.cp = layout.ulysses = 1;
  layout.tp = layout.pp = 1;
  layout.dp = 3;
  EXPECT_EQ(group_of(layout, {6, 3}, MeshAxis::kShard), (Group{2, Level::kNetwork}));
}

}  // namespace
}  // namespace ptrain::plan
