#include <gtest/gtest.h>

#include "core/program/passes/passes.h"
#include "tests/support/small_llama.h"

namespace ptrain::program {
namespace {

using support::small_llama;

std::string text_of(Draft draft) {
  std::string text;
  for (const Action& action : std::move(draft).finish()) text += to_text(action) + "\n";
  return text;
}

Draft draft_of(const std::string& text) {
  return Draft(program_from_text("program 1 rank 0/1 shape s\n" + text)->actions);
}

TEST(Passes, Segments) {
  const auto architecture = small_llama(1);
  mesh::Layout layout;
  const Pipeline pipeline = *pipeline_of(layout, 3, true);
  EXPECT_EQ(
      text_of(lay_segments(pipeline.schedule.ranks[0], pipeline, true, {architecture, layout})),
      "0 compute FORWARD s0 l0 m0 keep=all\n"
      "1 compute FORWARD s0 l1 m0 keep=all\n"
      "2 compute FORWARD s0 l2 m0 keep=all\n"
      "3 compute BACKWARD s0 l2 m0\n"
      "4 compute BACKWARD s0 l1 m0\n"
      "5 compute BACKWARD s0 l0 m0\n");
  layout.num_micro_batches = 2;
  const Pipeline forward = *pipeline_of(layout, 3, false);
  const auto& cells = forward.schedule.ranks[0];
  EXPECT_EQ(cells.size(), 2U);
  EXPECT_EQ(text_of(lay_segments(std::span(cells).last(1), forward, false, {architecture, layout})),
            "0 compute FORWARD s0 l0 m1 keep=none\n"
            "1 compute FORWARD s0 l1 m1 keep=none\n"
            "2 compute FORWARD s0 l2 m1 keep=none\n");
}

TEST(Passes, Recompute) {
  const auto architecture = small_llama(1);
  mesh::Layout layout;
  const std::string text =
      "0 compute FORWARD s0 l1 m0 keep=all\n1 compute FORWARD s0 l2 m0 keep=all\n"
      "2 compute BACKWARD s0 l2 m0\n3 compute BACKWARD s0 l1 m0 < 2\n";
  EXPECT_EQ(text_of(add_recompute(draft_of(text), {architecture, layout})), text);
  layout.recompute = recipe::Recompute::kFull;
  EXPECT_EQ(text_of(add_recompute(draft_of(text), {architecture, layout})),
            "0 compute FORWARD s0 l1 m0 keep=input\n1 compute FORWARD s0 l2 m0 keep=all\n"
            "2 compute BACKWARD s0 l2 m0\n"
            "3 compute RECOMPUTE s0 l1 m0 from=input < 2\n4 compute BACKWARD s0 l1 m0 < 2\n");
  layout.recompute = recipe::Recompute::kSelective;
  EXPECT_EQ(text_of(add_recompute(draft_of(text), {architecture, layout})),
            "0 compute FORWARD s0 l1 m0 keep=selected\n1 compute FORWARD s0 l2 m0 keep=all\n"
            "2 compute BACKWARD s0 l2 m0\n"
            "3 compute RECOMPUTE s0 l1 m0 from=selected < 2\n"
            "4 compute BACKWARD s0 l1 m0 < 2\n");
}

// Two blocks, forward only, nothing gathered ahead.
TEST(Passes, GathersWithoutPrefetch) {
  const auto architecture = small_llama(2);
  mesh::Layout layout;
  layout.shard = 2, layout.zero = 3, layout.prefetch = 0;
  EXPECT_EQ(text_of(add_gathers(draft_of("0 compute FORWARD l1 m0\n1 compute FORWARD l2 m0\n"
                                         "2 compute FORWARD l1 m1\n"),
                                {architecture, layout})),
            "0 gather UNSHARD g1\n1 compute FORWARD l1 m0 < 0\n2 gather RESHARD g1 < 1\n"
            "3 gather UNSHARD g2\n4 compute FORWARD l2 m0 < 3\n5 gather RESHARD g2 < 4\n"
            "6 gather UNSHARD g1\n7 compute FORWARD l1 m1 < 6\n8 gather RESHARD g1 < 7\n");
}

TEST(Passes, GathersAheadKeepWhatTheWindowNeeds) {
  const auto architecture = small_llama(2);
  mesh::Layout layout;
  layout.shard = 2, layout.zero = 3, layout.prefetch = 2;
  EXPECT_EQ(text_of(add_gathers(draft_of("0 compute FORWARD l1 m0\n1 compute FORWARD l2 m0\n"
                                         "2 compute FORWARD l1 m1\n3 compute FORWARD l2 m1\n"),
                                {architecture, layout})),
            "0 gather UNSHARD g1\n1 gather UNSHARD g2\n2 compute FORWARD l1 m0 < 0\n"
            "3 compute FORWARD l2 m0 < 1\n4 compute FORWARD l1 m1\n5 gather RESHARD g1 < 4\n"
            "6 compute FORWARD l2 m1\n7 gather RESHARD g2 < 6\n");
}

TEST(Passes, GathersOnceBelowZero3AndNeverUnsharded) {
  const auto architecture = small_llama(2);
  mesh::Layout layout;
  const std::string text =
      "0 compute FORWARD l1 m0\n1 compute FORWARD l2 m0\n2 compute BACKWARD l2 m0\n"
      "3 compute BACKWARD l1 m0\n";
  EXPECT_EQ(text_of(add_gathers(draft_of(text), {architecture, layout})), text);
  layout.shard = 2, layout.zero = 2, layout.prefetch = 0;
  EXPECT_EQ(text_of(add_gathers(draft_of(text), {architecture, layout})),
            "0 gather UNSHARD g1\n1 compute FORWARD l1 m0 < 0\n2 gather UNSHARD g2\n"
            "3 compute FORWARD l2 m0 < 2\n4 compute BACKWARD l2 m0\n5 gather RESHARD g2 < 4\n"
            "6 compute BACKWARD l1 m0\n7 gather RESHARD g1 < 6\n");
}

// An embedding's backward reads no parameters: they come for the forward that follows it, if any.
TEST(Passes, GathersNothingForTheBackwardOfAnEmbedding) {
  const auto architecture = small_llama(1);
  mesh::Layout layout;
  layout.shard = 2, layout.zero = 3, layout.prefetch = 0;
  EXPECT_EQ(text_of(add_gathers(draft_of("0 compute FORWARD l0 m0\n1 compute BACKWARD l1 m0\n"
                                         "2 compute BACKWARD l0 m0\n3 compute FORWARD l0 m1\n"
                                         "4 compute BACKWARD l1 m1\n5 compute BACKWARD l0 m1\n"),
                                {architecture, layout})),
            "0 gather UNSHARD g0\n1 compute FORWARD l0 m0 < 0\n2 gather RESHARD g0 < 1\n"
            "3 gather UNSHARD g1\n4 compute BACKWARD l1 m0 < 3\n5 gather RESHARD g1 < 4\n"
            "6 gather UNSHARD g0\n7 compute BACKWARD l0 m0\n8 compute FORWARD l0 m1 < 6\n"
            "9 gather RESHARD g0 < 8\n10 gather UNSHARD g1\n11 compute BACKWARD l1 m1 < 10\n"
            "12 gather RESHARD g1 < 11\n13 compute BACKWARD l0 m1\n");
}

const std::string kTwoBackwards =
    "0 compute BACKWARD l2 m0\n1 compute BACKWARD l1 m0\n2 compute BACKWARD l0 m0\n"
    "3 compute BACKWARD l2 m1\n4 compute BACKWARD l1 m1\n5 compute BACKWARD l0 m1\n";

TEST(Passes, ReductionOfOneRankOnlyMarksSums) {
  const auto architecture = small_llama(1);
  const mesh::Layout layout{.num_micro_batches = 2};
  EXPECT_EQ(text_of(add_reduction(draft_of(kTwoBackwards), {architecture, layout})),
            "0 compute BACKWARD l2 m0\n1 compute BACKWARD l1 m0\n"
            "2 compute BACKWARD l0 m0\n3 compute BACKWARD l2 m1\n"
            "4 compute BACKWARD l1 m1\n5 compute BACKWARD l0 m1\n");
}

// The tied head writes group 0 first, so the embedding adds; group 0 is reduced after it.
TEST(Passes, ReductionOfEachMicroBatchWithATiedHead) {
  const auto architecture = small_llama(1, true);
  const mesh::Layout layout{.shard = 2, .zero = 2, .num_micro_batches = 2};
  EXPECT_EQ(text_of(add_reduction(draft_of(kTwoBackwards), {architecture, layout})),
            "0 compute BACKWARD l2 m0\n1 reduce REDUCE_GRAD g2 m0 < 0\n"
            "2 compute BACKWARD l1 m0\n3 reduce REDUCE_GRAD g1 m0 < 2\n"
            "4 compute BACKWARD l0 m0 < 1\n5 reduce REDUCE_GRAD g0 m0 < 4\n"
            "6 compute BACKWARD l2 m1 < 3 5\n7 reduce REDUCE_GRAD g2 m1 < 6\n"
            "8 compute BACKWARD l1 m1\n9 reduce REDUCE_GRAD g1 m1 < 8\n"
            "10 compute BACKWARD l0 m1 < 7\n11 reduce REDUCE_GRAD g0 m1 < 10\n");
}

TEST(Passes, ReductionOnceWhereGradientsStayWhole) {
  const auto architecture = small_llama(1);
  const mesh::Layout layout{.dp = 2, .zero = 3, .num_micro_batches = 2};  // ZeRO 3 of one shard
  EXPECT_EQ(text_of(add_reduction(draft_of(kTwoBackwards), {architecture, layout})),
            "0 compute BACKWARD l2 m0\n1 compute BACKWARD l1 m0\n"
            "2 compute BACKWARD l0 m0\n"
            "3 compute BACKWARD l2 m1\n4 reduce REDUCE_GRAD g2 < 3\n"
            "5 compute BACKWARD l1 m1\n6 reduce REDUCE_GRAD g1 < 5\n"
            "7 compute BACKWARD l0 m1\n8 reduce REDUCE_GRAD g0 < 7\n");
}

// Each micro-batch over the shard axis, over the replicas once.
TEST(Passes, ReductionOverReplicasComesWithTheLastMicroBatch) {
  const auto architecture = small_llama(1);
  const mesh::Layout layout{.dp = 2, .shard = 2, .zero = 3, .num_micro_batches = 2};
  EXPECT_EQ(text_of(add_reduction(draft_of(kTwoBackwards), {architecture, layout})),
            "0 compute BACKWARD l2 m0\n1 reduce REDUCE_GRAD g2 m0 axis=shard < 0\n"
            "2 compute BACKWARD l1 m0\n3 reduce REDUCE_GRAD g1 m0 axis=shard < 2\n"
            "4 compute BACKWARD l0 m0 < 1\n"
            "5 reduce REDUCE_GRAD g0 m0 axis=shard < 4\n"
            "6 compute BACKWARD l2 m1 < 3\n7 reduce REDUCE_GRAD g2 m1 < 6\n"
            "8 compute BACKWARD l1 m1 < 5\n9 reduce REDUCE_GRAD g1 m1 < 8\n"
            "10 compute BACKWARD l0 m1 < 7\n11 reduce REDUCE_GRAD g0 m1 < 10\n");
}

TEST(Passes, OptimizerWaitsForWhatNobodyWaitedFor) {
  const auto architecture = small_llama(1);
  const mesh::Layout layout;
  EXPECT_EQ(text_of(add_optimizer(draft_of("0 compute BACKWARD l1 m0\n1 reduce REDUCE_GRAD g1 < 0\n"
                                           "2 compute BACKWARD l0 m0 < 1\n"
                                           "3 reduce REDUCE_GRAD g0 < 2\n"),
                                  {architecture, layout})),
            "0 compute BACKWARD l1 m0\n1 reduce REDUCE_GRAD g1 < 0\n"
            "2 compute BACKWARD l0 m0 < 1\n3 reduce REDUCE_GRAD g0 < 2\n"
            "4 reduce GRAD_NORM < 2 3\n5 compute OPTIMIZER g0 < 4\n6 compute OPTIMIZER g1 < 4\n");
}

}  // namespace
}  // namespace ptrain::program
