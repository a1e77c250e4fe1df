// Layouts whose ranks share rows (cp) compute what one process computes, in the bytes that
// core/program predicts.

#include <gtest/gtest.h>

#include "tests/parity/expectations.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using recipe::Recompute;

constexpr auto kNone = Recompute::kNone;
constexpr auto kSelective = Recompute::kSelective;
constexpr auto kFull = Recompute::kFull;

constexpr auto kNoGradient = "k_proj.bias";  // zero in truth, rounding here

// Twelve rows a step, whatever the layout.
struct Case {
  const char* name;
  const char* family;
  int ring, ulysses, tp, dp, shard, zero;
  std::int64_t micro_batch, num_micro_batches;
  Recompute recompute = kNone;
  RowKind rows = RowKind::kPacked;
};

// Four heads of queries, two of keys and values: with ulysses 4 two ranks have each of the latter,
// and so have two with tp 2 and ulysses 2.
constexpr Case kCases[] = {
    {"llama_ulysses2", "llama", 1, 2, 1, 1, 1, 1, 12, 1},
    {"llama_ulysses4", "llama", 1, 4, 1, 1, 1, 1, 3, 4},
    {"llama_ring2", "llama", 2, 1, 1, 1, 1, 1, 12, 1},
    {"llama_ring4", "llama", 4, 1, 1, 1, 1, 1, 3, 4},
    {"llama_ring3", "llama", 3, 1, 1, 1, 1, 1, 4, 3, kNone, RowKind::kWholeDocument},
    {"llama_ring2_ulysses2", "llama", 2, 2, 1, 1, 1, 1, 6, 2},
    {"llama_ring2_ulysses4", "llama", 2, 4, 1, 1, 1, 1, 6, 2, kFull},
    {"llama_ring2_dp2", "llama", 2, 1, 1, 2, 1, 1, 3, 2},
    {"llama_ulysses2_shard2_zero1", "llama", 1, 2, 1, 1, 2, 1, 3, 2},
    {"llama_ulysses2_shard2_zero2", "llama", 1, 2, 1, 1, 2, 2, 3, 2},
    {"llama_ring2_shard2_zero3", "llama", 2, 1, 1, 1, 2, 3, 3, 2},
    {"llama_ring2_zero2", "llama", 2, 1, 1, 1, 1, 2, 3, 4},
    {"llama_ulysses2_zero3", "llama", 1, 2, 1, 1, 1, 3, 3, 4, kSelective},
    {"llama_ring2_tp2", "llama", 2, 1, 2, 1, 1, 1, 3, 4},
    {"llama_ulysses2_tp2", "llama", 1, 2, 2, 1, 1, 1, 3, 4, kFull},
    {"llama_ring2_ulysses2_tp2_zero3", "llama", 2, 2, 2, 1, 1, 3, 3, 4, kSelective},
    {"llama_ring2_one_document", "llama", 2, 1, 1, 1, 1, 1, 12, 1, kNone, RowKind::kOneDocument},
    {"llama_ring2_ulysses2_whole_document", "llama", 2, 2, 1, 1, 1, 1, 1, 12, kNone,
     RowKind::kWholeDocument},
    {"mistral_ring2", "mistral", 2, 1, 1, 1, 1, 1, 12, 1},
    {"mistral_ring4_one_document", "mistral", 4, 1, 1, 1, 1, 1, 12, 1, kFull,
     RowKind::kOneDocument},
    {"mistral_ulysses2", "mistral", 1, 2, 1, 1, 1, 1, 12, 1},
    {"qwen2_ring2_ulysses2", "qwen2", 2, 2, 1, 1, 1, 1, 12, 1},
    {"qwen2_ulysses2_selective", "qwen2", 1, 2, 1, 1, 1, 1, 3, 4, kSelective},
    {"qwen3_ulysses4", "qwen3", 1, 4, 1, 1, 1, 1, 12, 1},
    {"qwen3_ring2_selective", "qwen3", 2, 1, 1, 1, 1, 1, 6, 2, kSelective},
    {"qwen3_ring2_ulysses2_recompute", "qwen3", 2, 2, 1, 1, 1, 1, 6, 2, kFull},
    {"gpt2_ulysses2", "gpt2", 1, 2, 1, 1, 1, 1, 12, 1},
    {"gpt2_ring2_tp2", "gpt2", 2, 1, 2, 1, 1, 1, 6, 2},
    {"gpt2_ring4_recompute", "gpt2", 4, 1, 1, 1, 1, 1, 6, 2, kFull},
    {"gemma2_ring2", "gemma2", 2, 1, 1, 1, 1, 1, 12, 1},
    {"gemma2_ulysses2_shard2_zero3", "gemma2", 1, 2, 1, 1, 2, 3, 3, 2, kFull},
    {"gemma3_ring4", "gemma3", 4, 1, 1, 1, 1, 1, 12, 1},
    {"deepseek_v2_ring2", "deepseek_v2", 2, 1, 1, 1, 1, 1, 12, 1},
    {"deepseek_v3_ulysses4", "deepseek_v3", 1, 4, 1, 1, 1, 1, 3, 4, kFull},
    {"deepseek_v3_ring2_ulysses2_zero3", "deepseek_v3", 2, 2, 1, 1, 1, 3, 3, 4, kSelective},
    {"gemma3_ring2_ulysses2_tp2", "gemma3", 2, 2, 2, 1, 1, 1, 6, 2, kSelective},
};

Experiment experiment_of(const Case& value, DType dtype) {
  Experiment experiment;
  experiment.model = support::small_model(value.family);
  experiment.model.vocab_size = 64;
  if (experiment.model.first_k_dense_replace > 0)  // latent attention, but no experts
    experiment.model.first_k_dense_replace = experiment.model.num_hidden_layers;
  experiment.dtype = dtype;
  experiment.rows = value.rows;
  experiment.layout.cp = value.ring * value.ulysses;
  experiment.layout.ulysses = value.ulysses;
  experiment.layout.tp = value.tp;
  experiment.layout.dp = value.dp;
  experiment.layout.shard = value.shard;
  experiment.layout.zero = value.zero;
  experiment.layout.micro_batch = value.micro_batch;
  experiment.layout.num_micro_batches = value.num_micro_batches;
  experiment.layout.recompute = value.recompute;
  return experiment;
}

class ContextLayouts : public testing::TestWithParam<Case> {};

TEST_P(ContextLayouts, EqualOneProcessInFloat64) {
  expect_one_process_in_float64(experiment_of(GetParam(), DType::kFloat64), kNoGradient);
}

TEST_P(ContextLayouts, EqualOneProcessInFloat32) {
  auto experiment = experiment_of(GetParam(), DType::kFloat32);
  experiment.num_steps = 10;
  experiment.learning_rate = 1e-3;
  const auto run = train(experiment), truth = train(on_one_rank(experiment));
  expect_losses(run, truth, 1e-5);
  expect_gradients(run, truth, 1e-5, kNoGradient);
}

TEST_P(ContextLayouts, RepeatBitForBit) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16})
    expect_repeats(experiment_of(GetParam(), dtype));
}

void expect_predicted(Experiment experiment) {
  experiment.rows = RowKind::kWholeDocument;
  experiment.num_steps = 2;
  expect_predicted_bytes(experiment, train(experiment), kPredictedClasses);
}

TEST_P(ContextLayouts, TakeThePredictedBytes) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16})
    expect_predicted(experiment_of(GetParam(), dtype));
}

void expect_temporary(const Trajectory& run, std::size_t rank, bool exact) {
  constexpr auto kTemporary = static_cast<std::size_t>(program::MemoryClass::kTemporary);
  const auto measured = run.peak_bytes[rank][kTemporary].value;
  const auto predicted = run.predicted_bytes[rank][kTemporary].value;
  EXPECT_LE(measured, predicted) << "of rank " << rank;
  if (exact) {
    EXPECT_EQ(measured, predicted) << "of rank " << rank;
  }
}

TEST_P(ContextLayouts, TakeAtMostThePredictedBytesOfShortDocuments) {
  for (const RowKind rows : {RowKind::kShort, RowKind::kNextFit}) {
    Experiment experiment = experiment_of(GetParam(), DType::kFloat32);
    experiment.rows = rows;
    experiment.num_steps = 2;
    const Trajectory run = train(experiment);
    for (std::size_t rank = 0; rank < run.peak_bytes.size(); ++rank)
      expect_temporary(run, rank, false);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ContextLayouts, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Of whole documents a rank would get whole rows. One long document among short ones is cut for
// all ranks, and with wide heads its queries then take more beside the keys before them than whole
// rows take beside their own. Everything is computed again, so that this is the most of a step.
TEST(ContextScratch, IsThatOfTheCutThatDocumentsChoose) {
  Experiment experiment =
      experiment_of({"", "llama", 2, 1, 1, 1, 1, 1, 4, 1, kFull}, DType::kFloat32);
  experiment.model.num_attention_heads = 2;
  experiment.model.num_key_value_heads = 1;
  experiment.model.head_dim = 64;
  experiment.model.intermediate_size = 200;
  experiment.sequence = 8;
  experiment.rows = RowKind::kShort;
  experiment.num_steps = 2;
  expect_temporary(train(experiment), 1, true);  // which has the middle of the document
}

// Parameters and their gradients lie in a window of the node, what layers exchange does not.
TEST(ContextWindow, GivesTheBitsOfMessages) {
  for (std::size_t i = 0; i < std::size(kCases); i += 3) {
    Experiment experiment = experiment_of(kCases[i], DType::kFloat32);
    const auto messages = train(experiment);
    experiment.layout.shared_window = true;
    const auto window = train(experiment);
    EXPECT_EQ(window.losses, messages.losses) << kCases[i].name;
    EXPECT_EQ(window.final_parameters, messages.final_parameters) << kCases[i].name;
  }
}

TEST(ContextWindow, TakesThePredictedBytes) {
  for (std::size_t i = 1; i < std::size(kCases); i += 3) {
    Experiment experiment = experiment_of(kCases[i], DType::kBFloat16);
    experiment.layout.shared_window = true;
    expect_predicted(experiment);
  }
}

}  // namespace
}  // namespace ptrain::parity
