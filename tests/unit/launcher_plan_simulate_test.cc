#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "core/mesh/part.h"
#include "core/program/compile.h"
#include "launcher/plan/simulate.h"
#include "tests/support/simulated.h"
#include "tests/support/small_llama.h"

namespace ptrain::plan {
namespace {

using program::Action;
using program::Kind;
using program::Lane;
using program::Program;
using support::action;
using support::exposed;

// Gather, then compute on it, then reduce; a second gather runs beside the compute.
Program three_lanes() {
  Program program;
  program.actions = {action(0, Lane::kGather, Kind::kUnshard),
                     action(1, Lane::kGather, Kind::kUnshard),
                     action(2, Lane::kCompute, Kind::kForward, {0}),
                     action(3, Lane::kCompute, Kind::kForward, {1}),
                     action(4, Lane::kReduce, Kind::kReduceGrad, {3})};
  return program;
}

SimulateOptions by_id(std::vector<double> seconds, bool serial = false) {
  SimulateOptions options;
  options.seconds = [seconds](const Action& a, int) {
    return seconds[static_cast<std::size_t>(a.id)];
  };
  options.serial = serial;
  return options;
}

// By hand: gathers 0-2 and 2-5; computes 2-3 and 5-9; reduce 9-10. Compute waits 2 + 2 for gathers
// and 1 for the reduce at the end; it works 5 of 10.
TEST(Simulate, LanesRunSideBySide) {
  const auto program = three_lanes();
  const auto timeline = simulate(std::span(&program, 1), by_id({2, 3, 1, 4, 1}));
  ASSERT_TRUE(timeline);
  const RankTimeline& rank = timeline->ranks[0];
  EXPECT_EQ(rank.actions, (std::vector<Interval>{{0, 2}, {2, 5}, {2, 3}, {5, 9}, {9, 10}}));
  EXPECT_DOUBLE_EQ(timeline->step_s, 10);
  EXPECT_DOUBLE_EQ(exposed(rank, Lane::kGather), 4);
  EXPECT_DOUBLE_EQ(exposed(rank, Lane::kReduce), 1);
  EXPECT_DOUBLE_EQ(timeline->bubble, 0.5);
}

// The time from the first to the last segment of a call of layer 1.
double span_of(const Program& program, const RankTimeline& timeline, Kind kind) {
  double first = -1, last = 0;
  for (const Action& a : program.actions) {
    if (a.kind != kind || a.layer_first != 1) continue;
    const Interval& interval = timeline.actions[static_cast<std::size_t>(a.id)];
    if (first < 0) first = interval.start_s;
    last = interval.end_s;
  }
  return last - first;
}

// Around a ring of four ranks keys and values travel beside attention. Forward: five segments of a
// second, three shifts of 0.9. Backward: the same before attention, four times attention, with five
// shifts begun before, between and behind them; only the last one, of gradients on their way home,
// has no attention beside it.
TEST(Simulate, ShiftsOfARingHideBehindAttention) {
  const auto whole = support::small_llama(1);
  const mesh::Layout layout{.cp = 4};
  std::vector<Program> programs;
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    const auto part = *mesh::part_of(whole, layout, rank);
    programs.push_back(*program::compile({part, layout, "ring"}, rank));
  }
  const auto count = [&](Kind kind) {
    return std::ranges::count_if(
        programs[0].actions, [&](const Action& a) { return a.kind == kind && a.layer_first == 1; });
  };
  ASSERT_EQ(count(Kind::kForward), 5);
  ASSERT_EQ(count(Kind::kBackward), 7);
  SimulateOptions options;
  options.seconds = [](const Action& a, int) {
    if (a.kind == Kind::kExchange) return a.attribute("kind") == "shift" ? 0.9 : 0.0;
    if (a.kind == Kind::kBackward && a.segment == 5) return 0.0;  // sets a buffer to zero
    return a.kind == Kind::kForward || a.kind == Kind::kBackward ? 1.0 : 0.0;
  };
  options.members = [](const Action& a, int) {
    const bool meets = a.kind == Kind::kExchange && a.attribute("kind") == "shift";
    return meets ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{};
  };
  const auto beside = simulate(programs, options);
  ASSERT_TRUE(beside) << beside.error().message;
  EXPECT_NEAR(span_of(programs[0], beside->ranks[0], Kind::kForward), 5, 1e-9);
  EXPECT_NEAR(span_of(programs[0], beside->ranks[0], Kind::kBackward), 6 + 0.9, 1e-9);
  options.serial = true;
  const auto serial = simulate(programs, options);
  ASSERT_TRUE(serial) << serial.error().message;
  EXPECT_NEAR(span_of(programs[0], serial->ranks[0], Kind::kForward), 5 + 3 * 0.9, 1e-9);
  EXPECT_NEAR(span_of(programs[0], serial->ranks[0], Kind::kBackward), 6 + 5 * 0.9, 1e-9);
}

// By hand: one queue, so the durations add up to 11 and 6 of them are communication.
TEST(Simulate, SerialAddsUp) {
  const auto program = three_lanes();
  const auto timeline = simulate(std::span(&program, 1), by_id({2, 3, 1, 4, 1}, true));
  ASSERT_TRUE(timeline);
  EXPECT_DOUBLE_EQ(timeline->step_s, 11);
  EXPECT_DOUBLE_EQ(exposed(timeline->ranks[0], Lane::kGather), 5);
  EXPECT_DOUBLE_EQ(exposed(timeline->ranks[0], Lane::kReduce), 1);
  EXPECT_NEAR(timeline->bubble, 6.0 / 11, 1e-12);
}

Program compute_then_reduce(int rank) {
  Program program;
  program.rank = rank;
  program.num_ranks = 2;
  program.actions = {action(0, Lane::kCompute, Kind::kBackward),
                     action(1, Lane::kReduce, Kind::kReduceGrad, {0}),
                     action(2, Lane::kCompute, Kind::kOptimizer, {1})};
  return program;
}

// Seconds of each rank's backward; the reduce of both takes 2 s, the optimizer 1.
SimulateOptions backward_takes(std::vector<double> seconds) {
  SimulateOptions options;
  options.seconds = [seconds = std::move(seconds)](const Action& a, int rank) {
    if (a.kind == Kind::kBackward) return seconds[static_cast<std::size_t>(rank)];
    return a.kind == Kind::kReduceGrad ? 2.0 : 1.0;
  };
  options.members = [](const Action& a, int) {
    return a.kind == Kind::kReduceGrad ? std::vector<int>{0, 1} : std::vector<int>{};
  };
  return options;
}

// By hand: rank 0 computes 1 s, rank 1 computes 3 s; the reduce of 2 s starts at 3 on both;
// optimizer 5-6.
TEST(Simulate, CollectivesWaitForTheSlowest) {
  const std::vector<Program> world{compute_then_reduce(0), compute_then_reduce(1)};
  const auto timeline = simulate(world, backward_takes({1, 3}));
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->ranks[0].actions[1], (Interval{3, 5}));
  EXPECT_EQ(timeline->ranks[1].actions[1], (Interval{3, 5}));
  EXPECT_DOUBLE_EQ(timeline->step_s, 6);
  EXPECT_DOUBLE_EQ(exposed(timeline->ranks[0], Lane::kReduce), 4);
  EXPECT_DOUBLE_EQ(exposed(timeline->ranks[1], Lane::kReduce), 2);
}

// The same with the slow rank first: who arrives last in our bookkeeping must not matter.
TEST(Simulate, TheOrderOfTheRanksDoesNotMatter) {
  const std::vector<Program> world{compute_then_reduce(0), compute_then_reduce(1)};
  const auto timeline = simulate(world, backward_takes({3, 1}));
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->ranks[0].actions[1], (Interval{3, 5}));
  EXPECT_EQ(timeline->ranks[1].actions[1], (Interval{3, 5}));
  EXPECT_DOUBLE_EQ(timeline->step_s, 6);
}

TEST(Simulate, NamesTheActionThatNeverStarts) {
  Program program;
  program.rank = 7;
  program.actions = {action(0, Lane::kCompute, Kind::kForward, {1}),
                     action(1, Lane::kCompute, Kind::kBackward)};
  const auto timeline = simulate(std::span(&program, 1), by_id({1, 1}));
  ASSERT_FALSE(timeline);
  EXPECT_EQ(timeline.error().code, ExitCode::kBug);
  EXPECT_NE(timeline.error().message.find("rank 7"), std::string::npos);
  EXPECT_NE(timeline.error().message.find("FORWARD"), std::string::npos);
}

RC_GTEST_PROP(SimulateProperties, LongerActionsNeverShortenTheStep, ()) {
  const auto program = three_lanes();
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) seconds.push_back(*rc::gen::inRange(0, 100));
  auto longer = seconds;
  longer[*rc::gen::inRange<std::size_t>(0, 5)] += *rc::gen::inRange(0, 50);
  for (const bool serial : {false, true}) {
    const auto before = simulate(std::span(&program, 1), by_id(seconds, serial));
    const auto after = simulate(std::span(&program, 1), by_id(longer, serial));
    RC_ASSERT(before->step_s <= after->step_s);
  }
  RC_ASSERT(simulate(std::span(&program, 1), by_id(seconds))->step_s <=
            simulate(std::span(&program, 1), by_id(seconds, true))->step_s);
}

}  // namespace
}  // namespace ptrain::plan
