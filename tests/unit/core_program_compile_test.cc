#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/program/compile.h"
#include "tests/support/compile_world.h"
#include "tests/support/small_llama.h"

namespace ptrain::program {
namespace {

using mesh::Layout;
using support::small_llama;

std::string golden(const std::string& name) {
  const std::string root = std::getenv("PTRAIN_SOURCE_DIR");
  std::ifstream file(root + "/tests/golden/program/" + name);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string compiled(const model::Architecture& architecture, const Layout& layout) {
  return to_text(*compile({architecture, layout, "short"}, 0));
}

std::string refusal(const Layout& layout, int rank = 0) {
  const auto program = compile({small_llama(1), layout, "short"}, rank);
  EXPECT_FALSE(program);
  if (program) return "";
  EXPECT_EQ(program.error().code, ExitCode::kUsage);
  return program.error().message;
}

int count(const Program& program, Kind kind) {
  int sum = 0;
  for (const Action& action : program.actions) sum += action.kind == kind;
  return sum;
}

TEST(Compile, GoldenPrograms) {
  EXPECT_EQ(compiled(small_llama(1), {.shard = 2, .zero = 3, .num_micro_batches = 2}),
            golden("zero3_shard2.txt"));
  EXPECT_EQ(compiled(small_llama(1),
                     {.dp = 2, .num_micro_batches = 2, .recompute = recipe::Recompute::kFull}),
            golden("dp2_recompute.txt"));
  EXPECT_EQ(compiled(small_llama(1, true), {.dp = 2, .shard = 2, .num_micro_batches = 2}),
            golden("zero1_dp2_shard2_tied.txt"));
}

std::vector<int> gathers_by_group(const Program& program, int num_groups) {
  std::vector<int> counts(static_cast<std::size_t>(num_groups));
  for (const Action& action : program.actions)
    counts[static_cast<std::size_t>(std::max(action.group, 0))] += action.kind == Kind::kUnshard;
  return counts;
}

// Three blocks, three micro-batches. Nothing ahead: the embedding for its forward alone, a block
// for forward and backward, the head for both at once; a tied head reads the embedding once more.
// Recomputation runs beside the backward and gathers nothing of its own.
TEST(Compile, GathersWhatIsReadAndNoMore) {
  for (const auto recompute :
       {recipe::Recompute::kNone, recipe::Recompute::kSelective, recipe::Recompute::kFull}) {
    Layout layout{.shard = 2, .zero = 3, .num_micro_batches = 3, .recompute = recompute};
    layout.prefetch = 0;
    const auto gathers = [&](bool tied) {
      const auto architecture = small_llama(3, tied);
      return gathers_by_group(*compile({architecture, layout, "short"}, 0), 5);
    };
    EXPECT_EQ(gathers(false), (std::vector<int>{3, 6, 6, 6, 3}));
    EXPECT_EQ(gathers(true), (std::vector<int>{6, 6, 6, 6, 3}));
    // One layer ahead the last block stays for its backward, and between micro-batches the first
    // for its next forward.
    layout.prefetch = 1;
    EXPECT_EQ(gathers(false), (std::vector<int>{3, 4, 6, 3, 3}));
  }
}

TEST(Compile, EvaluationIsForwardOnly) {
  const auto architecture = small_llama(2);
  const Layout layout{.shard = 2, .zero = 3, .num_micro_batches = 3};
  const Program program = *compile({architecture, layout, "short", Purpose::kEvaluate}, 1);
  EXPECT_EQ(count(program, Kind::kForward), 12);
  EXPECT_EQ(count(program, Kind::kBackward) + count(program, Kind::kReduceGrad), 0);
  EXPECT_EQ(count(program, Kind::kGradNorm) + count(program, Kind::kOptimizer), 0);
  EXPECT_EQ(count(program, Kind::kUnshard), count(program, Kind::kReshard));
  for (const Action& action : program.actions) {
    EXPECT_EQ(action.attribute("keep"), action.kind == Kind::kForward ? "none" : "");
  }
}

TEST(Compile, RanksOfOneLayoutAreOneClass) {
  const auto architecture = small_llama(1);
  const Layout layout{.dp = 2, .shard = 3, .zero = 2};
  const auto world = support::compile_world({architecture, layout, "short"});
  ASSERT_EQ(world.size(), 6u);
  for (const Program& program : world) EXPECT_EQ(class_hash(program), class_hash(world[0]));
  EXPECT_EQ(world[5].rank, 5);
  EXPECT_EQ(world[5].num_ranks, 6);
}

TEST(Compile, WhatCannotRunIsRefused) {
  EXPECT_EQ(refusal({.tp = 0}), "layout: tp is 0");
  EXPECT_EQ(refusal({.pp = 2}), "layout: a pipeline has no schedule");
  EXPECT_EQ(refusal({.pp = 2, .schedule = "1f1b", .shared_window = true}),
            "layout: stages of a pipeline share no window of memory");
  EXPECT_EQ(refusal({.cp = 4, .ulysses = 3}), "layout: ulysses is 3, which does not divide cp 4");
  EXPECT_EQ(refusal({.cp = 2, .ulysses = 4}), "layout: ulysses is 4");
  EXPECT_EQ(refusal({.dp = 0}), "layout: dp is 0");
  EXPECT_EQ(refusal({.shard = -2}), "layout: shard is -2");
  EXPECT_EQ(refusal({.zero = 4}), "layout: zero is 4");
  EXPECT_EQ(refusal({.micro_batch = 0}), "layout: micro_batch is 0");
  EXPECT_EQ(refusal({.num_micro_batches = 0}), "layout: number of micro-batches is 0");
  EXPECT_EQ(refusal({.prefetch = -1}), "layout: prefetch is -1");
  EXPECT_EQ(refusal({.dp = 2}, 2), "layout: rank is 2");
}

TEST(Compile, AWholeModelIsNoPartOfTensorRanks) {
  const auto program = compile({small_llama(1), {.tp = 2}, "short"}, 0);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().message,
            "a model for 1 tensor ranks, and a layout for 2: give its part");
  const auto shared = compile({small_llama(1), {.cp = 2}, "short"}, 0);
  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().message,
            "a model for 1 context ranks, and a layout for 2: give its part");
}

}  // namespace
}  // namespace ptrain::program
