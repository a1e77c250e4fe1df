#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/program/compile.h"
#include "core/program/pipeline.h"
#include "core/program/validate.h"
#include "core/schedule/csv.h"
#include "tests/support/compile_world.h"
#include "tests/support/random_schedule.h"
#include "tests/support/small_llama.h"

namespace ptrain::program {
namespace {

using mesh::Layout;
using support::drop;
using support::small_llama;
using World = std::vector<Program>;

std::string message(const Status& status) { return status ? "" : status.error().message; }

Layout pipeline(int pp, int num_virtual, std::string schedule, std::int64_t num_micro_batches) {
  Layout layout;
  layout.pp = pp;
  layout.num_virtual = num_virtual;
  layout.schedule = std::move(schedule);
  layout.num_micro_batches = num_micro_batches;
  return layout;
}

std::string text_of(const Program& program) {
  const std::string text = to_text(program);
  return text.substr(text.find('\n') + 1);
}

// By hand: two ranks of one block and an end each, 1f1b of two micro-batches.
TEST(PipelineProgram, OneForwardOneBackward) {
  const auto architecture = small_llama(2);
  const World world = support::compile_world({architecture, pipeline(2, 1, "1f1b", 2), "s"});
  EXPECT_EQ(text_of(world[0]),
            "0 compute FORWARD s0 l0 m0 keep=all\n"
            "1 compute FORWARD s0 l1 m0 keep=all\n"
            "2 transfer SEND_F s0 m0 to=1 < 1\n"
            "3 transfer RECV_B s0 m0 from=1\n"
            "4 compute FORWARD s0 l0 m1 keep=all\n"
            "5 compute FORWARD s0 l1 m1 keep=all\n"
            "6 transfer SEND_F s0 m1 to=1 < 5\n"
            "7 transfer RECV_B s0 m1 from=1\n"
            "8 compute BACKWARD s0 l1 m0 < 2 3\n"
            "9 compute BACKWARD s0 l0 m0\n"
            "10 compute BACKWARD s0 l1 m1 < 6 7\n"
            "11 compute BACKWARD s0 l0 m1\n"
            "12 reduce GRAD_NORM < 11\n"
            "13 compute OPTIMIZER g0 < 12\n"
            "14 compute OPTIMIZER g1 < 12\n");
  EXPECT_EQ(text_of(world[1]),
            "0 transfer RECV_F s1 m0 from=0\n"
            "1 compute FORWARD s1 l2 m0 keep=all < 0\n"
            "2 compute FORWARD s1 l3 m0 keep=all\n"
            "3 transfer RECV_F s1 m1 from=0\n"
            "4 compute BACKWARD s1 l3 m0\n"
            "5 compute BACKWARD s1 l2 m0\n"
            "6 transfer SEND_B s1 m0 to=0 < 5\n"
            "7 compute FORWARD s1 l2 m1 keep=all < 3\n"
            "8 compute FORWARD s1 l3 m1 keep=all\n"
            "9 compute BACKWARD s1 l3 m1 < 6\n"
            "10 compute BACKWARD s1 l2 m1\n"
            "11 transfer SEND_B s1 m1 to=0 < 10\n"
            "12 reduce GRAD_NORM < 10\n"
            "13 compute OPTIMIZER g2 < 12\n"
            "14 compute OPTIMIZER g3 < 12\n");
}

// Whose blocks queue products, whose ends do not; a tied head on the other rank is added up.
TEST(PipelineProgram, SplitBackwardAndTiedHead) {
  const auto architecture = small_llama(2, true);
  Layout layout = pipeline(2, 1, "", 1);
  layout.schedule_csv = "0F0,0I0,0W0\n1F0,1I0,1W0\n";
  const World world = support::compile_world({architecture, layout, "s"});
  EXPECT_EQ(text_of(world[1]),
            "0 transfer RECV_F s1 m0 from=0\n"
            "1 compute FORWARD s1 l2 m0 keep=all < 0\n"
            "2 compute FORWARD s1 l3 m0 keep=all\n"
            "3 compute BACKWARD_INPUT s1 l3 m0\n"
            "4 compute BACKWARD_INPUT s1 l2 m0\n"
            "5 transfer SEND_B s1 m0 to=0 < 4\n"
            "6 compute BACKWARD_WEIGHT s1 l2 m0\n"
            "7 reduce SYNC_TIED g0 < 3\n"
            "8 reduce GRAD_NORM < 6 7\n"
            "9 compute OPTIMIZER g0 < 8\n"
            "10 compute OPTIMIZER g2 < 8\n"
            "11 compute OPTIMIZER g3 < 8\n");
  EXPECT_EQ(message(validate(world, architecture, layout)), "");
}

// The bend of a V hands the stream over on its rank.
TEST(PipelineProgram, NeighboursOnOneRankSendNothing) {
  const auto architecture = small_llama(6);
  const World world = support::compile_world({architecture, pipeline(2, 2, "zb_v", 4), "s"});
  std::set<std::string> sent;
  for (const Action& action : world[1].actions)
    if (action.kind == Kind::kSendForward || action.kind == Kind::kSendBackward)
      sent.insert(std::string(to_string(action.kind)) + " s" + std::to_string(action.stage));
  EXPECT_EQ(sent, (std::set<std::string>{"SEND_B s1", "SEND_F s2"}));
}

struct Named {
  const char* name;
  int pp, num_virtual, num_micro_batches;
};

constexpr Named kNamed[] = {
    {"gpipe", 4, 1, 6},
    {"1f1b", 4, 1, 8},
    {"1f1b", 4, 1, 2},
    {"gpipe_lifo", 3, 1, 4},
    {"eager_1f1b", 4, 1, 7},
    {"1f1b_overlap", 3, 1, 6},
    {"interleaved_1f1b", 2, 3, 5},
    {"breadth_first", 4, 2, 4},
    {"zb_h1", 4, 1, 8},
    {"zb_h2", 3, 1, 8},
    {"zb_v", 4, 2, 8},
    {"v_half", 4, 2, 8},
    {"dualpipe_v", 3, 2, 8},
    {"hanayo", 2, 2, 4},
    {"gpipe_2bp", 3, 1, 4},
    {"1f1b_2bp", 4, 1, 6},
};

class NamedSchedules : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(NamedSchedules, AreLegalPrograms) {
  const Named& named = kNamed[std::get<0>(GetParam())];
  Layout layout = pipeline(named.pp, named.num_virtual, named.name, named.num_micro_batches);
  const int variant = std::get<1>(GetParam());
  const bool tied = variant % 2 == 1;
  const auto architecture = small_llama(layout.num_stages() + 1, tied);
  if (variant > 0) {
    layout.dp = variant == 1 ? 2 : 1;
    layout.shard = variant == 1 ? 1 : 2;
    layout.zero = std::max(1, variant - 1);
    layout.recompute = variant == 2 ? recipe::Recompute::kFull : recipe::Recompute::kNone;
  }
  for (const Purpose purpose : {Purpose::kTrain, Purpose::kEvaluate}) {
    const World world = support::compile_world({architecture, layout, "s", purpose});
    for (const Queues queues : {Queues::kByLane, Queues::kOne})
      EXPECT_EQ(message(validate(world, architecture, layout, queues)), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, NamedSchedules,
                         testing::Combine(testing::Range(0, static_cast<int>(std::size(kNamed))),
                                          testing::Range(0, 5)));

TEST(PipelineProgram, RandomSchedulesAreLegal) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const test::RandomSchedule sizes{.num_ranks = 2 + static_cast<int>(random() % 5),
                                     .num_virtual = 1 + static_cast<int>(random() % 2),
                                     .num_micro_batches = 1 + static_cast<int>(random() % 6)};
    Layout layout = pipeline(sizes.num_ranks, sizes.num_virtual, "", sizes.num_micro_batches);
    layout.schedule_csv = schedule::to_csv(test::random_legal(sizes, random));
    layout.shard = 1 + static_cast<int>(random() % 2);
    layout.zero = 1 + static_cast<int>(random() % 3);
    const auto architecture = small_llama(layout.num_stages(), random() % 2 == 0);
    const World world = support::compile_world({architecture, layout, "s"});
    ASSERT_EQ(message(validate(world, architecture, layout, Queues::kOne)), "")
        << layout.schedule_csv;
    ASSERT_EQ(message(validate(world, architecture, layout)), "") << layout.schedule_csv;
  }
}

std::string broken(const std::function<void(World&)>& change) {
  const auto architecture = small_llama(2, true);
  const Layout layout = pipeline(2, 1, "zb_h1", 2);
  World world = support::compile_world({architecture, layout, "s"});
  change(world);
  return message(validate(world, architecture, layout));
}

std::size_t find(const Program& program, Kind kind, int micro_batch = -1) {
  for (std::size_t i = 0; i < program.actions.size(); ++i)
    if (program.actions[i].kind == kind &&
        (micro_batch < 0 || program.actions[i].micro_batch == micro_batch))
      return i;
  ADD_FAILURE() << to_string(kind);
  return 0;
}

// Every action matters.
TEST(PipelineProgram, EveryActionThatIsMissingIsFound) {
  const auto architecture = small_llama(2, true);
  const Layout layout = pipeline(2, 1, "zb_h1", 2);
  const World legal = support::compile_world({architecture, layout, "s"});
  for (std::size_t rank = 0; rank < legal.size(); ++rank)
    for (std::size_t i = 0; i < legal[rank].actions.size(); ++i) {
      World world = legal;
      drop(world[rank], i);
      EXPECT_FALSE(validate(world, architecture, layout)) << to_text(legal[rank].actions[i]);
    }
}

TEST(PipelineProgram, BrokenTransfersAreNamed) {
  EXPECT_EQ(broken([](World& w) { drop(w[0], find(w[0], Kind::kSendForward, 1)); }),
            "rank 0, end: m1 of stage 0 is never sent on");
  EXPECT_EQ(broken([](World& w) { w[1].actions[find(w[1], Kind::kForward, 0)].after.clear(); }),
            "rank 1, 1 compute FORWARD s1 l2 m0 keep=all: does not wait for 0");
  EXPECT_EQ(broken([](World& w) {
              Program& p = w[1];
              p.actions[find(p, Kind::kReceiveForward, 0)].micro_batch = 1;
            }),
            "rank 1, 1 compute FORWARD s1 l2 m0 keep=all < 0: nothing was received for it");
  EXPECT_EQ(broken([](World& w) { drop(w[1], find(w[1], Kind::kSyncTied)); }),
            "rank 1, 14 reduce GRAD_NORM < 13: the copies of g0 are not added up");
}

TEST(PipelineProgram, RefusesWhatCannotRun) {
  const auto refusal = [](const Layout& layout) {
    const auto pipeline = pipeline_of(layout, 6, true);
    return pipeline ? "" : pipeline.error().message;
  };
  EXPECT_NE(refusal(pipeline(2, 2, "dualpipe", 4)).find("weights twice"), std::string::npos);
  EXPECT_NE(refusal(pipeline(2, 1, "1f2b", 4)).find("1f2b"), std::string::npos);
  EXPECT_NE(refusal(pipeline(8, 1, "1f1b", 4)).find("6 layers"), std::string::npos);
  Layout layout = pipeline(2, 1, "", 3);
  layout.schedule_csv = "0F0,0B0\n1F0,1B0\n";
  EXPECT_NE(refusal(layout).find("1 micro-batches, but a step 3"), std::string::npos);
  layout.num_micro_batches = 1;
  layout.schedule_csv = "0F0,0B0\n1F0,1B0\n2F0,2B0\n";
  EXPECT_NE(refusal(layout).find("3 ranks"), std::string::npos);
  layout.schedule_csv = "0F0,0B0\n1F0\n";
  EXPECT_NE(refusal(layout).find("rank 1"), std::string::npos);
  layout.schedule_csv = "";
  layout.schedule = "1f1b";
  layout.stage_layers = {4, 3};
  EXPECT_NE(refusal(layout).find("4, 3"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::program
