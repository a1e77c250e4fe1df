#include <gtest/gtest.h>

#include <algorithm>

#include "core/program/compile.h"
#include "core/program/pipeline.h"
#include "tests/support/small_llama.h"
#include "tests/support/world_of_parts.h"

namespace ptrain::program {
namespace {

using mesh::Layout;
using support::drop;
using support::WorldOfParts;

Layout pipeline(int pp, int num_virtual, std::string schedule, std::int64_t num_micro_batches) {
  Layout layout;
  layout.pp = pp;
  layout.num_virtual = num_virtual;
  layout.schedule = std::move(schedule);
  layout.num_micro_batches = num_micro_batches;
  layout.spread_embedding = true;
  return layout;
}

// By hand: what 1f1b does with two micro-batches, between the look-ups and the gradients of all.
TEST(SpreadEmbedding, StandsAroundTheCells) {
  const WorldOfParts world(support::small_llama(2), pipeline(2, 1, "1f1b", 2));
  const std::string lookup =
      "0 compute FORWARD s0 l0.0 m0 keep=all\n"
      "1 compute EXCHANGE s0 l0.0 m0 kind=reduce_scatter axis=vocabulary token_bytes=32\n"
      "2 compute FORWARD s0 l0.1 m0 keep=all\n"
      "3 compute FORWARD s0 l0.0 m1 keep=all\n"
      "4 compute EXCHANGE s0 l0.0 m1 kind=reduce_scatter axis=vocabulary token_bytes=32\n"
      "5 compute FORWARD s0 l0.1 m1 keep=all\n";
  EXPECT_EQ(world.text(0),
            lookup +
                "6 compute FORWARD s0 l1 m0 keep=all\n"
                "7 transfer SEND_F s0 m0 to=1 < 6\n"
                "8 transfer RECV_B s0 m0 from=1\n"
                "9 compute FORWARD s0 l1 m1 keep=all\n"
                "10 transfer SEND_F s0 m1 to=1 < 9\n"
                "11 transfer RECV_B s0 m1 from=1\n"
                "12 compute BACKWARD s0 l1 m0 < 7 8\n"
                "13 compute BACKWARD s0 l1 m1 < 10 11\n"
                "14 compute BACKWARD s0 l0.0 m0\n"
                "15 compute EXCHANGE s0 l0.0 m0 kind=all_gather axis=vocabulary token_bytes=32\n"
                "16 compute BACKWARD s0 l0.1 m0\n"
                "17 compute BACKWARD s0 l0.0 m1\n"
                "18 compute EXCHANGE s0 l0.0 m1 kind=all_gather axis=vocabulary token_bytes=32\n"
                "19 compute BACKWARD s0 l0.1 m1\n"
                "20 reduce GRAD_NORM < 19\n"
                "21 compute OPTIMIZER g0 < 20\n"
                "22 compute OPTIMIZER g1 < 20\n");
  EXPECT_EQ(world.text(1).substr(0, lookup.size()), lookup);
  EXPECT_EQ(world.check(), "");
}

// Nothing is learned, so nothing comes behind the cells.
TEST(SpreadEmbedding, ForwardOnly) {
  const WorldOfParts world(support::small_llama(2), pipeline(2, 1, "1f1b", 1), Purpose::kEvaluate);
  EXPECT_EQ(world.text(1),
            "0 compute FORWARD s0 l0.0 m0 keep=none\n"
            "1 compute EXCHANGE s0 l0.0 m0 kind=reduce_scatter axis=vocabulary token_bytes=32\n"
            "2 compute FORWARD s0 l0.1 m0 keep=none\n"
            "3 transfer RECV_F s1 m0 from=0\n"
            "4 compute FORWARD s1 l2 m0 keep=none < 3\n"
            "5 compute FORWARD s1 l3 m0 keep=none\n");
}

struct Named {
  const char* name;
  int pp, num_virtual, num_micro_batches;
};

TEST(SpreadEmbedding, OfEachScheduleIsLegal) {
  for (const Named& named : {Named{"gpipe", 4, 1, 6},
                             {"1f1b", 4, 1, 8},
                             {"1f1b", 4, 1, 2},
                             {"interleaved_1f1b", 2, 2, 5},
                             {"breadth_first", 4, 2, 4},
                             {"zb_h1", 4, 1, 8},
                             {"zb_v", 4, 2, 8},
                             {"dualpipe_v", 3, 2, 8},
                             {"1f1b_2bp", 4, 1, 6}})
    for (const int zero : {1, 2, 3})
      for (const bool tied : {false, true}) {
        Layout layout = pipeline(named.pp, named.num_virtual, named.name, named.num_micro_batches);
        layout.shard = 2;
        layout.zero = zero;
        layout.spread_head = tied;
        const WorldOfParts world(support::small_llama(8, tied), layout);
        for (const Queues queues : {Queues::kByLane, Queues::kOne})
          EXPECT_EQ(world.check(queues), "") << mesh::to_string(layout);
      }
}

TEST(SpreadEmbedding, MeetsOverTensorRanksToo) {
  Layout layout = pipeline(2, 1, "1f1b", 4);
  layout.tp = 2;
  layout.dp = 2;
  layout.cp = 2;
  EXPECT_EQ(WorldOfParts(support::small_llama(2), layout).check(), "") << mesh::to_string(layout);
}

// Each rank has the same rows of a tied matrix twice, so no stage has another's to add.
TEST(SpreadEmbedding, NeedsNoSumOfATiedMatrix) {
  Layout layout = pipeline(2, 1, "1f1b", 2);
  layout.spread_head = true;
  const WorldOfParts world(support::small_llama(2, true), layout);
  EXPECT_EQ(world.check(), "");
  for (const std::size_t rank : {0u, 1u})
    EXPECT_EQ(world.text(rank).find("SYNC_TIED"), std::string::npos);
}

TEST(SpreadEmbedding, IsMissedWhereARankLeavesItOut) {
  WorldOfParts world(support::small_llama(2), pipeline(2, 1, "1f1b", 2));
  for (int i = 0; i < 3; ++i) drop(world.program(0), 3);
  EXPECT_NE(world.check().find("m1 is not embedded"), std::string::npos) << world.check();
  WorldOfParts other(support::small_llama(2), pipeline(2, 1, "1f1b", 2));
  auto& actions = other.program(1).actions;
  for (std::size_t at = actions.size(); at-- > 0;)
    if (actions[at].layer_first == 0 && actions[at].micro_batch == 1) drop(other.program(1), at);
  const auto norm = std::ranges::find(actions, Kind::kGradNorm, &Action::kind);
  norm->after = {norm->id - 1};  // the last backward
  EXPECT_NE(other.check().find("g0 has 1 of 2 gradients"), std::string::npos) << other.check();
}

// The gradient is there once the first stage has gone back with the micro-batch: the three actions
// from 14 on come one place too early.
TEST(SpreadEmbedding, GoesBackBehindTheFirstStage) {
  WorldOfParts world(support::small_llama(2), pipeline(2, 1, "1f1b", 2));
  auto& actions = world.program(0).actions;
  for (Action& action : actions)
    if (action.layer_first == 0 && action.kind != Kind::kForward && action.id > 13)
      action.micro_batch = 1 - action.micro_batch;
  std::rotate(actions.begin() + 13, actions.begin() + 14, actions.begin() + 17);
  for (std::size_t at = 13; at < 17; ++at) actions[at].id = static_cast<int>(at);
  EXPECT_NE(world.check().find("stage 0 has not gone back with m1"), std::string::npos)
      << world.check();
}

TEST(SpreadEmbedding, IsDoneOnceAMicroBatch) {
  WorldOfParts world(support::small_llama(2), pipeline(2, 1, "1f1b", 2));
  for (Action& action : world.program(0).actions)
    if (action.layer_first == 0) action.micro_batch = 0;
  EXPECT_NE(world.check().find("was done already"), std::string::npos) << world.check();
}

TEST(SpreadEmbedding, LeavesTheFirstStageALayer) {
  Layout layout = pipeline(2, 1, "1f1b", 2);
  layout.stage_layers = {1, 3};
  const auto refused = pipeline_of(layout, 4, true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "layout: the first stage has nothing but the embedding, which all stages share");
  EXPECT_NE(refused.error().hint.find("parallel.embedding: first_stage"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::program
