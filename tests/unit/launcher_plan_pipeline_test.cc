// Programs of pipelines on the clock, against the makespans that are published for their orders
// (unit costs: F 1, B 2, I 1, W 1), and what the planner refuses.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/program/compile.h"
#include "core/schedule/catalogue.h"
#include "core/schedule/simulate.h"
#include "launcher/plan/enumerate.h"
#include "launcher/plan/explain.h"
#include "launcher/plan/simulate.h"
#include "tests/support/compile_world.h"
#include "tests/support/small_llama.h"

namespace ptrain::plan {
namespace {

using program::Action;
using program::Kind;
using support::small_llama;

double unit_cost(const Action& action, double sending) {
  switch (action.kind) {
    case Kind::kForward:
    case Kind::kBackwardInput:
    case Kind::kBackwardWeight:
      return 1;
    case Kind::kBackward:
      return 2;
    case Kind::kSendForward:
    case Kind::kSendBackward:
      return sending;
    default:
      return 0;
  }
}

// One block a stage; the ends of the model cost nothing.
double makespan(const char* schedule, int num_virtual, int num_micro_batches, double sending,
                int pp = 4) {
  mesh::Layout layout;
  layout.pp = pp;
  layout.num_virtual = num_virtual;
  layout.schedule = schedule;
  layout.num_micro_batches = num_micro_batches;
  layout.stage_layers.assign(static_cast<std::size_t>(layout.num_stages()), 1);
  layout.stage_layers.front() = layout.stage_layers.back() = 2;
  const auto architecture = small_llama(layout.num_stages());
  const auto world = support::compile_world({architecture, layout, "s"});
  SimulateOptions options;
  options.seconds = [&](const Action& action, int) {
    const bool is_end = action.layer_first == 0 || action.layer_first == layout.num_stages() + 1;
    return is_end ? 0 : unit_cost(action, sending);
  };
  std::vector<int> all(static_cast<std::size_t>(pp));
  std::iota(all.begin(), all.end(), 0);
  options.members = [&](const Action& action, int) {
    return action.kind == Kind::kGradNorm ? all : std::vector<int>{};
  };
  return simulate(world, options)->step_s;
}

TEST(PipelineClock, TakesAsLongAsIsPublished) {
  EXPECT_EQ(makespan("gpipe", 1, 8, 0), 33);
  EXPECT_EQ(makespan("1f1b", 1, 8, 0), 33);
  EXPECT_EQ(makespan("eager_1f1b", 1, 8, 0), 33);
  EXPECT_EQ(makespan("gpipe_2bp", 1, 8, 0), 30);
  EXPECT_EQ(makespan("zb_h1", 1, 8, 0), 27);
  EXPECT_EQ(makespan("interleaved_1f1b", 2, 8, 0), 57);
  EXPECT_EQ(makespan("breadth_first", 2, 8, 0), 57);
  EXPECT_EQ(makespan("zb_v", 2, 8, 0), 51);
  EXPECT_EQ(makespan("v_half", 2, 8, 0), 53);
  EXPECT_EQ(makespan("gpipe", 1, 8, 1), 39);
  EXPECT_EQ(makespan("1f1b", 1, 8, 1), 49);
  EXPECT_EQ(makespan("zb_h1", 1, 8, 1), 41);
}

// Where a RECV is posted keeps no cell waiting longer than its input takes to come.
TEST(PipelineClock, TakesAsLongAsTheSchedule) {
  for (const auto& [name, num_virtual] :
       {std::pair{"1f1b", 1}, std::pair{"interleaved_1f1b", 2}, std::pair{"interleaved_zb_1p", 2},
        std::pair{"zb_v", 2}, std::pair{"hanayo", 4}})
    for (const int pp : {2, 4, 8})
      for (const double hop : {0.0, 0.5, 1.0}) {
        const schedule::Problem problem{.num_ranks = pp,
                                        .num_virtual = num_virtual,
                                        .num_micro_batches = 2 * pp,
                                        .costs = {.communication = hop}};
        const auto made = schedule::make(name, problem).value();
        const auto run = schedule::simulate(made, schedule::uniform_timing(made, problem.costs));
        EXPECT_EQ(makespan(name, num_virtual, 2 * pp, hop, pp), run->makespan)
            << name << " on " << pp << ", a hop takes " << hop;
      }
}

struct Refusal {
  const char* name;
  recipe::Parallel fixed;
  const char* reason;
  const char* detail;
};

class Refusals : public testing::TestWithParam<int> {};

recipe::Parallel fixed(int pp, int num_virtual, const char* schedule, const char* stages = "",
                       const char* stage_recompute = "") {
  recipe::Parallel parallel;
  parallel.dp = parallel.shard = parallel.tp = 1;
  parallel.pp = pp;
  parallel.num_virtual = num_virtual;
  parallel.schedule = schedule;
  parallel.stages = stages;
  parallel.stage_recompute = stage_recompute;
  parallel.micro_batch = 2;
  return parallel;
}

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> all = {
      {"FewMicroBatches", fixed(4, 2, "dualpipe_v"), "the schedule does not suit the layout", "8"},
      {"NoSuchSchedule", fixed(4, 1, "1f2b"), "the schedule does not suit the layout", "1f2b"},
      {"TwoCopies", fixed(4, 2, "dualpipe"), "the schedule does not suit the layout", "twice"},
      {"WrongVirtual", fixed(4, 1, "zb_v"), "the schedule does not suit the layout", "2 virtual"},
      {"TooManyStages", fixed(4, 3, "interleaved_1f1b"), "the layers do not make the stages",
       "10 at most"},
      {"WrongStages", fixed(4, 1, "1f1b", "4,3,2"), "the layers do not make the stages",
       "4 counts that add up to 10"},
      {"WrongWord", fixed(4, 1, "1f1b", "", "none,all,full,none"),
       "what stages compute again does not suit the layout", "'all'"},
      {"WrongWords", fixed(4, 1, "1f1b", "", "none,full"),
       "what stages compute again does not suit the layout", "give 4 entries"},
      {"NoStages", fixed(4, 1, "1f1b", "4;3;3"), "the layers do not make the stages", "9,8,9"},
  };
  return all;
}

TEST_P(Refusals, SayWhatWouldDo) {
  const Refusal& refusal = refusals()[static_cast<std::size_t>(GetParam())];
  const auto architecture = small_llama(8);
  Space space{4, 8, refusal.fixed};
  space.architecture = &architecture;
  space.sequence = 16;
  const Enumeration all = enumerate(space);
  EXPECT_TRUE(all.legal.empty());
  bool found = false;
  for (const Rejected& rejected : all.rejected)
    if (rejected.layout.pp == 4 && rejected.reason == refusal.reason &&
        rejected.detail.find(refusal.detail) != std::string::npos)
      found = true;
  EXPECT_TRUE(found) << refusal.name;
  for (const auto& one : summarize(all.rejected))
    if (!found) ADD_FAILURE() << one.reason << ": " << one.nearest;
}

INSTANTIATE_TEST_SUITE_P(All, Refusals, testing::Range(0, 9));

TEST(PipelineLayouts, StagesMayComputeAgainWhatTheyLike) {
  const auto architecture = small_llama(8);
  Space space{4, 8, fixed(4, 1, "1f1b", "3,3,2,2", "full,selective,none,none")};
  space.architecture = &architecture;
  space.sequence = 16;
  const Enumeration all = enumerate(space);
  ASSERT_FALSE(all.legal.empty());
  using enum recipe::Recompute;
  for (const mesh::Layout& layout : all.legal) {
    EXPECT_EQ(layout.stage_layers, (std::vector<int>{3, 3, 2, 2}));
    EXPECT_EQ(layout.stage_recompute, (std::vector{kFull, kSelective, kNone, kNone}));
  }
}

TEST(PipelineLayouts, OneStageHasNoListOfWhatStagesComputeAgain) {
  const auto architecture = small_llama(8);
  Space space{4, 8, fixed(0, 0, "", "", "full,none")};
  space.fixed.dp = space.fixed.shard = 0;
  space.architecture = &architecture;
  space.sequence = 16;
  const Enumeration all = enumerate(space);
  ASSERT_FALSE(all.legal.empty());
  for (const mesh::Layout& layout : all.legal) EXPECT_EQ(layout.num_stages(), 2);
  bool found = false;
  for (const Rejected& rejected : all.rejected)
    found |= rejected.layout.pp == 1 &&
             rejected.detail == "there is one stage: give recompute in its place";
  EXPECT_TRUE(found);
}

TEST(PipelineLayouts, TakeTheDTypesOfTheirStages) {
  const auto architecture = small_llama(4);
  Space space{2, 4, fixed(2, 1, "1f1b", "2,4")};
  space.architecture = &architecture;
  space.sequence = 16;
  space.fixed.stage_dtype = "fp32,bf16";
  const Enumeration all = enumerate(space);
  ASSERT_FALSE(all.legal.empty());
  constexpr auto kWide = DType::kFloat32, kNarrow = DType::kBFloat16;
  for (const mesh::Layout& layout : all.legal)
    EXPECT_EQ(layout.layer_dtypes, (std::vector{kWide, kWide, kNarrow, kNarrow, kNarrow, kNarrow}));
}

TEST(PipelineLayouts, DTypesThatDoNotSuitAreRefused) {
  const auto free = small_llama(4), tied = small_llama(4, true);
  struct Case {
    int pp;
    const char* words;
    const model::Architecture* architecture;
    const char* said;
  };
  for (const Case& value :
       {Case{2, "fp32,fp16", &free,
             "parallel.stage_dtype: unknown value 'fp16' in the list; allowed: fp32, bf16 for each "
             "stage, separated by commas"},
        Case{2, "bf16", &free,
             "parallel.stage_dtype has 1 entry, but pp x virtual is 2; give 2 "
             "entries, or leave it out"},
        Case{1, "bf16", &free, "there is one stage: give precision in its place"},
        Case{2, "fp32,bf16", &tied,
             "layout: a tied head in another dtype than the embedding; give "
             "the first and the last stage the same dtype"}}) {
    Space space{value.pp, 4, fixed(value.pp, 1, value.pp > 1 ? "1f1b" : "")};
    space.architecture = value.architecture;
    space.sequence = 16;
    space.fixed.stage_dtype = value.words;
    const Enumeration all = enumerate(space);
    EXPECT_TRUE(all.legal.empty()) << value.words;
    const bool found = std::ranges::any_of(
        all.rejected, [&](const Rejected& rejected) { return rejected.detail == value.said; });
    EXPECT_TRUE(found) << value.said;
  }
}

TEST(PipelineLayouts, OfAFileTakeItsOrder) {
  const auto architecture = small_llama(4);
  Space space{2, 4, fixed(2, 0, "order.csv")};
  space.architecture = &architecture;
  space.schedule_csv = "0F0,2F0,2B0,0B0,0F1,2F1,2B1,0B1\n1F0,3F0,3B0,1B0,1F1,3F1,3B1,1B1\n";
  const Enumeration all = enumerate(space);
  ASSERT_FALSE(all.legal.empty());
  for (const mesh::Layout& layout : all.legal) {
    EXPECT_EQ(layout.num_virtual, 2);
    EXPECT_EQ(layout.num_micro_batches, 2);
    EXPECT_EQ(layout.schedule_csv, space.schedule_csv);
    EXPECT_EQ(layout.stage_layers.size(), 4U);
  }
}

}  // namespace
}  // namespace ptrain::plan
