#include <gtest/gtest.h>

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
  layout.spread_head = true;
  return layout;
}

// By hand: 1f1b of two micro-batches, whose S stand behind F1 (core_schedule_shared_work_test.cc).
TEST(SpreadHead, OneForwardOneBackward) {
  WorldOfParts world(support::small_llama(2), pipeline(2, 1, "1f1b", 2));
  EXPECT_EQ(world.text(0),
            "0 compute FORWARD s0 l0 m0 keep=all\n"
            "1 compute FORWARD s0 l1 m0 keep=all\n"
            "2 transfer SEND_F s0 m0 to=1 < 1\n"
            "3 compute FORWARD s0 l0 m1 keep=all\n"
            "4 compute FORWARD s0 l1 m1 keep=all\n"
            "5 transfer SEND_F s0 m1 to=1 < 4\n"
            "6 compute BACKWARD s1 l3.0 m0 < 2\n"
            "7 compute EXCHANGE s1 l3.0 m0 kind=all_gather axis=vocabulary token_bytes=32\n"
            "8 compute BACKWARD s1 l3.1 m0\n"
            "9 compute EXCHANGE s1 l3.1 m0 kind=reduce_scatter axis=vocabulary token_bytes=32\n"
            "10 compute BACKWARD s1 l3.2 m0\n"
            "11 transfer RECV_B s0 m0 from=1\n"
            "12 compute BACKWARD s1 l3.0 m1 < 5\n"
            "13 compute EXCHANGE s1 l3.0 m1 kind=all_gather axis=vocabulary token_bytes=32\n"
            "14 compute BACKWARD s1 l3.1 m1\n"
            "15 compute EXCHANGE s1 l3.1 m1 kind=reduce_scatter axis=vocabulary token_bytes=32\n"
            "16 compute BACKWARD s1 l3.2 m1\n"
            "17 transfer RECV_B s0 m1 from=1\n"
            "18 compute BACKWARD s0 l1 m0 < 11\n"
            "19 compute BACKWARD s0 l0 m0\n"
            "20 compute BACKWARD s0 l1 m1 < 17\n"
            "21 compute BACKWARD s0 l0 m1\n"
            "22 reduce GRAD_NORM < 21\n"
            "23 compute OPTIMIZER g0 < 22\n"
            "24 compute OPTIMIZER g1 < 22\n"
            "25 compute OPTIMIZER g3 < 22\n");
  EXPECT_EQ(world.check(), "");
}

// A pass without gradients shares the head where the last stage has made its input.
TEST(SpreadHead, ForwardOnly) {
  Layout layout = pipeline(2, 1, "1f1b", 1);
  const WorldOfParts world(support::small_llama(2), layout, Purpose::kEvaluate);
  EXPECT_EQ(world.text(0),
            "0 compute FORWARD s0 l0 m0 keep=none\n"
            "1 compute FORWARD s0 l1 m0 keep=none\n"
            "2 transfer SEND_F s0 m0 to=1 < 1\n"
            "3 compute FORWARD s1 l3.0 m0 keep=none\n"
            "4 compute EXCHANGE s1 l3.0 m0 kind=all_gather axis=vocabulary token_bytes=32\n"
            "5 compute FORWARD s1 l3.1 m0 keep=none\n");
}

struct Named {
  const char* name;
  int pp, num_virtual, num_micro_batches;
};

TEST(SpreadHead, OfEachScheduleIsLegal) {
  for (const Named& named : {Named{"gpipe", 4, 1, 6},
                             {"1f1b", 4, 1, 8},
                             {"1f1b", 4, 1, 2},
                             {"gpipe_lifo", 3, 1, 4},
                             {"eager_1f1b", 4, 1, 7},
                             {"interleaved_1f1b", 2, 2, 5},
                             {"breadth_first", 4, 2, 4},
                             {"zb_h1", 4, 1, 8},
                             {"zb_h2", 3, 1, 8},
                             {"zb_v", 4, 2, 8},
                             {"v_half", 4, 2, 8},
                             {"dualpipe_v", 3, 2, 8},
                             {"hanayo", 2, 2, 4},
                             {"1f1b_2bp", 4, 1, 6}})
    for (const int zero : {1, 2, 3}) {
      Layout layout = pipeline(named.pp, named.num_virtual, named.name, named.num_micro_batches);
      layout.shard = 2;
      layout.zero = zero;
      const WorldOfParts world(support::small_llama(8), layout);
      for (const Queues queues : {Queues::kByLane, Queues::kOne})
        EXPECT_EQ(world.check(queues), "") << mesh::to_string(layout);
    }
}

TEST(SpreadHead, MeetsOverTensorRanksToo) {
  Layout layout = pipeline(2, 1, "1f1b", 4);
  layout.tp = 2;
  layout.dp = 2;
  layout.cp = 2;
  layout.ulysses = 1;
  EXPECT_EQ(WorldOfParts(support::small_llama(2), layout).check(), "") << mesh::to_string(layout);
}

TEST(SpreadHead, IsMissedWhereARankLeavesItOut) {
  WorldOfParts world(support::small_llama(2), pipeline(2, 1, "1f1b", 2));
  for (int i = 0; i < 5; ++i) drop(world.program(0), 6);
  EXPECT_NE(world.check().find("g3 has 1 of 2 gradients"), std::string::npos) << world.check();
}

// In another order of micro-batches on one rank nobody meets.
TEST(SpreadHead, IsDoneByAllRanksAtTheSameTime) {
  WorldOfParts world(support::small_llama(2), pipeline(2, 1, "1f1b", 2));
  for (Action& action : world.program(0).actions)
    if (action.layer_first == 3) action.micro_batch = 1 - action.micro_batch;
  EXPECT_NE(world.check().find("never runs: its group does not meet here"), std::string::npos)
      << world.check();
}

}  // namespace
}  // namespace ptrain::program
