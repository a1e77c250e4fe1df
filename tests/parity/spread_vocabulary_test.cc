// Pipelines whose ranks all share the head, the embedding or both compute what one process
// computes, and hold the bytes that were predicted.

#include <gtest/gtest.h>

#include <ostream>
#include <random>

#include "core/schedule/csv.h"
#include "tests/parity/expectations.h"
#include "tests/support/random_schedule.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using recipe::Recompute;

// What all ranks share: one of the two, both, or both as one matrix.
enum class Spread { kHead, kEmbedding, kBoth, kTied };

struct Case {
  const char* name;
  const char* schedule;
  int pp, num_virtual;
  std::int64_t num_micro_batches;
  int dp = 1, shard = 1, zero = 1;
  Recompute recompute = Recompute::kNone;
  const char* family = nullptr;
  int tp = 1, ring = 1, ulysses = 1;
  std::vector<int> stage_layers = {};
  Spread spread = Spread::kHead;
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

Experiment experiment_of(const Case& value, DType dtype) {
  Experiment experiment;
  experiment.model =
      value.family == nullptr ? support::small_sizes() : support::small_model(value.family);
  experiment.model.num_hidden_layers = 6;
  experiment.model.tie_word_embeddings = value.spread == Spread::kTied;
  // 61 rows: no two ranks have as many. What tp splits must be even.
  if (value.tp > 1) experiment.model.vocab_size = 62;
  experiment.dtype = dtype;
  experiment.sequence = 12;
  mesh::Layout& layout = experiment.layout;
  layout.spread_embedding = value.spread != Spread::kHead;
  layout.spread_head = value.spread != Spread::kEmbedding;
  layout.pp = value.pp;
  layout.num_virtual = value.num_virtual;
  layout.schedule = value.schedule;
  layout.stage_layers = value.stage_layers;
  layout.dp = value.dp;
  layout.shard = value.shard;
  layout.zero = value.zero;
  layout.tp = value.tp;
  layout.cp = value.ring * value.ulysses;
  layout.ulysses = value.ulysses;
  layout.recompute = value.recompute;
  layout.num_micro_batches = value.num_micro_batches;
  return experiment;
}

Case spread(Spread what, Case value) {
  value.spread = what;
  return value;
}

const std::vector<Case> kCases = {
    {"gpipe_pp2", "gpipe", 2, 1, 4},
    {"gpipe_pp4", "gpipe", 4, 1, 4},
    {"1f1b_pp2", "1f1b", 2, 1, 4},
    {"1f1b_pp4", "1f1b", 4, 1, 8},
    {"1f1b_pp3_few", "1f1b", 3, 1, 2},
    {"1f1b_pp2_head_alone", "1f1b", 2, 1, 4, 1, 1, 1, Recompute::kNone, nullptr, 1, 1, 1, {7, 1}},
    {"eager_1f1b_pp4", "eager_1f1b", 4, 1, 8},
    {"interleaved_pp2", "interleaved_1f1b", 2, 2, 4},
    {"interleaved_pp4", "interleaved_1f1b", 4, 2, 8},
    {"zb_h1_pp2", "zb_h1", 2, 1, 4},
    {"zb_h1_pp4", "zb_h1", 4, 1, 8},
    {"zb_v_pp4", "zb_v", 4, 2, 8},
    {"1f1b_dp2", "1f1b", 2, 1, 4, 2},
    {"1f1b_zero1", "1f1b", 2, 1, 4, 1, 2, 1},
    {"zb_h1_zero2_recompute", "zb_h1", 2, 1, 4, 1, 2, 2, Recompute::kFull},
    {"interleaved_zero3", "interleaved_1f1b", 2, 2, 4, 1, 2, 3},
    {"1f1b_hsdp_zero3", "1f1b", 2, 1, 3, 2, 2, 3, Recompute::kSelective},
    {"1f1b_gpt2", "1f1b", 2, 1, 4, 1, 1, 1, Recompute::kNone, "gpt2"},
    {"zb_h1_gemma2", "zb_h1", 2, 1, 4, 1, 1, 1, Recompute::kSelective, "gemma2"},
    {"1f1b_tp2", "1f1b", 2, 1, 4, 1, 1, 1, Recompute::kNone, nullptr, 2},
    {"zb_v_tp2_shard2_zero2", "zb_v", 2, 2, 4, 1, 2, 2, Recompute::kNone, nullptr, 2},
    {"1f1b_ring2", "1f1b", 2, 1, 4, 1, 1, 1, Recompute::kNone, nullptr, 1, 2},
    {"1f1b_tp2_ulysses2", "1f1b", 2, 1, 4, 1, 1, 1, Recompute::kNone, nullptr, 2, 1, 2},
    spread(Spread::kEmbedding, {"embedding_1f1b_pp2", "1f1b", 2, 1, 4}),
    spread(Spread::kEmbedding, {"embedding_gpipe_pp4", "gpipe", 4, 1, 4}),
    spread(Spread::kEmbedding, {"embedding_zb_v_pp3", "zb_v", 3, 2, 6}),
    spread(Spread::kEmbedding,
           {"embedding_1f1b_gpt2", "1f1b", 2, 1, 4, 1, 1, 1, Recompute::kNone, "gpt2"}),
    spread(Spread::kEmbedding,
           {"embedding_zb_h1_gemma2", "zb_h1", 2, 1, 4, 1, 1, 1, Recompute::kFull, "gemma2"}),
    spread(Spread::kEmbedding, {"embedding_hsdp_zero3", "1f1b", 2, 1, 3, 2, 2, 3}),
    spread(Spread::kEmbedding,
           {"embedding_tp2_ring2", "1f1b", 2, 1, 4, 1, 1, 1, Recompute::kNone, "gpt2", 2, 2}),
    spread(Spread::kBoth, {"both_zb_h1_pp4", "zb_h1", 4, 1, 8}),
    spread(Spread::kBoth, {"both_interleaved_zero2", "interleaved_1f1b", 2, 2, 4, 1, 2, 2}),
    spread(Spread::kBoth, {"both_1f1b_tp2_ulysses2", "1f1b", 2, 1, 4, 1, 1, 1, Recompute::kNone,
                           nullptr, 2, 1, 2}),
    spread(Spread::kTied, {"tied_1f1b_pp2", "1f1b", 2, 1, 4}),
    spread(Spread::kTied, {"tied_1f1b_pp4_dp2", "1f1b", 4, 1, 8, 2}),
    spread(Spread::kTied,
           {"tied_zb_v_pp2_gpt2", "zb_v", 2, 2, 4, 1, 1, 1, Recompute::kNone, "gpt2"}),
    spread(Spread::kTied, {"tied_interleaved_gemma3_zero3", "interleaved_1f1b", 2, 2, 4, 1, 2, 3,
                           Recompute::kSelective, "gemma3"}),
    spread(Spread::kTied,
           {"tied_1f1b_tp2_gpt2_zero2", "1f1b", 2, 1, 4, 1, 2, 2, Recompute::kNone, "gpt2", 2}),
};

class SpreadVocabulary : public testing::TestWithParam<Case> {};

TEST_P(SpreadVocabulary, EqualOneProcessInFloat64) {
  expect_one_process_in_float64(experiment_of(GetParam(), DType::kFloat64));
}

TEST_P(SpreadVocabulary, EqualOneProcessInFloat32) {
  expect_one_process_in_float32(experiment_of(GetParam(), DType::kFloat32));
}

// Of the matrix a rank has its part: what it keeps for good, and what its call takes.
TEST_P(SpreadVocabulary, HoldWhatIsPredicted) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    Experiment experiment = experiment_of(GetParam(), dtype);
    experiment.rows = RowKind::kWholeDocument;
    experiment.num_steps = 2;
    expect_predicted_bytes(experiment, train(experiment), kPredictedInPipelines);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpreadVocabulary, testing::ValuesIn(kCases),
                         [](const auto& named) { return std::string(named.param.name); });

// Whatever the order of the cells, the ranks meet where they share a matrix.
TEST(RandomSpreadVocabulary, RunsInAnyOrderOfAPipeline) {
  std::mt19937 random(5);
  for (int i = 0; i < 30; ++i) {
    const int num_ranks = 2 + static_cast<int>(random() % 4);
    const test::RandomSchedule sizes{.num_ranks = num_ranks,
                                     .num_virtual = num_ranks > 4 ? 1 : 2,
                                     .num_micro_batches = 1 + static_cast<int>(random() % 5)};
    Case value{"random", "", sizes.num_ranks, sizes.num_virtual, sizes.num_micro_batches};
    value.shard = num_ranks > 4 ? 1 : 1 + static_cast<int>(random() % 2);
    value.zero = 1 + static_cast<int>(random() % 3);
    value.spread = static_cast<Spread>(i % 4);
    Experiment experiment = experiment_of(value, DType::kFloat64);
    experiment.layout.schedule_csv = schedule::to_csv(test::random_legal(sizes, random));
    experiment.model.num_hidden_layers = 14;  // the first stage has a block
    experiment.num_steps = 2;
    experiment.sequence = 6;
    expect_losses_and_norms(train(experiment), train(on_one_rank(experiment)), 1e-9);
    ASSERT_FALSE(testing::Test::HasFailure()) << experiment.layout.schedule_csv;
  }
}

}  // namespace
}  // namespace ptrain::parity
