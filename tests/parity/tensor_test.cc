// Layouts whose ranks share layers (tp) compute what one process computes, in the bytes that
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
  int tp, dp, shard, zero;
  std::int64_t micro_batch, num_micro_batches;
  Recompute recompute = kNone;
  RowKind rows = RowKind::kPacked;
};

// Four heads of queries, two of keys and values: with tp 4 two ranks hold each of the latter.
constexpr Case kCases[] = {
    {"llama_tp2", "llama", 2, 1, 1, 1, 12, 1},
    {"llama_tp4", "llama", 4, 1, 1, 1, 3, 4},
    {"llama_tp2_dp2", "llama", 2, 2, 1, 1, 3, 2},
    {"llama_tp2_shard2_zero1", "llama", 2, 1, 2, 1, 3, 2},
    {"llama_tp2_shard2_zero2", "llama", 2, 1, 2, 2, 3, 2},
    {"llama_tp2_shard2_zero3", "llama", 2, 1, 2, 3, 3, 2},
    {"llama_tp2_hsdp2x2_zero3", "llama", 2, 2, 2, 3, 1, 3, kFull},
    {"llama_tp4_shard2_zero2", "llama", 4, 1, 2, 2, 2, 3, kSelective},
    {"llama_tp2_one_document", "llama", 2, 1, 1, 1, 12, 1, kNone, RowKind::kOneDocument},
    {"mistral_tp2_dp3", "mistral", 2, 3, 1, 1, 2, 2},
    {"mistral_tp4_selective", "mistral", 4, 1, 1, 1, 6, 2, kSelective},
    {"qwen2_tp2_shard3_zero3", "qwen2", 2, 1, 3, 3, 2, 2},
    {"qwen2_tp4_recompute", "qwen2", 4, 1, 1, 1, 12, 1, kFull},
    {"qwen3_tp2_recompute", "qwen3", 2, 1, 1, 1, 6, 2, kFull},
    {"qwen3_tp4_shard2_zero1", "qwen3", 4, 1, 2, 1, 2, 3, kSelective},
    {"gpt2_tp2_shard2_zero3", "gpt2", 2, 1, 2, 3, 3, 2},
    {"gpt2_tp4", "gpt2", 4, 1, 1, 1, 12, 1},
    {"gpt2_tp2_dp2_recompute", "gpt2", 2, 2, 1, 1, 3, 2, kFull},
    {"gemma2_tp2", "gemma2", 2, 1, 1, 1, 12, 1},
    {"gemma2_tp4_shard2_zero3", "gemma2", 4, 1, 2, 3, 3, 2, kFull},
    {"gemma3_tp2_selective", "gemma3", 2, 1, 1, 1, 12, 1, kSelective},
    {"gemma3_tp4_dp2", "gemma3", 4, 2, 1, 1, 3, 2, kFull},
};

Experiment experiment_of(const Case& value, DType dtype) {
  Experiment experiment;
  experiment.model = support::small_model(value.family);
  experiment.model.vocab_size = 64;
  experiment.dtype = dtype;
  experiment.rows = value.rows;
  experiment.layout.tp = value.tp;
  experiment.layout.dp = value.dp;
  experiment.layout.shard = value.shard;
  experiment.layout.zero = value.zero;
  experiment.layout.micro_batch = value.micro_batch;
  experiment.layout.num_micro_batches = value.num_micro_batches;
  experiment.layout.recompute = value.recompute;
  return experiment;
}

class TensorLayouts : public testing::TestWithParam<Case> {};

TEST_P(TensorLayouts, EqualOneProcessInFloat64) {
  expect_one_process_in_float64(experiment_of(GetParam(), DType::kFloat64), kNoGradient);
}

TEST_P(TensorLayouts, EqualOneProcessInFloat32) {
  auto experiment = experiment_of(GetParam(), DType::kFloat32);
  experiment.num_steps = 10;
  experiment.learning_rate = 1e-3;
  const auto run = train(experiment), truth = train(on_one_rank(experiment));
  expect_losses(run, truth, 1e-5);
  expect_gradients(run, truth, 1e-5, kNoGradient);
}

// What is gathered and the gradients of what is summed are rounded to bfloat16 as on one rank, but
// products are rounded in parts: gradients agree to what its eight bits can tell.
TEST_P(TensorLayouts, EqualOneProcessInBFloat16) {
  auto experiment = experiment_of(GetParam(), DType::kBFloat16);
  experiment.num_steps = 10;
  experiment.learning_rate = 1e-3;
  const auto run = train(experiment), truth = train(on_one_rank(experiment));
  expect_losses(run, truth, 5e-4);
  expect_gradients(run, truth, 2e-2, kNoGradient);
}

TEST_P(TensorLayouts, RepeatBitForBit) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16})
    expect_repeats(experiment_of(GetParam(), dtype));
}

void expect_predicted(Experiment experiment) {
  experiment.rows = RowKind::kWholeDocument;
  experiment.num_steps = 2;
  expect_predicted_bytes(experiment, train(experiment), kPredictedClasses);
}

TEST_P(TensorLayouts, TakeThePredictedBytes) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16})
    expect_predicted(experiment_of(GetParam(), dtype));
}

INSTANTIATE_TEST_SUITE_P(All, TensorLayouts, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

// What a rank holds beside parameters, gradients and states at most.
std::int64_t passing_bytes(const program::BytesByClass& bytes) {
  return bytes[static_cast<std::size_t>(program::MemoryClass::kStash)].value +
         bytes[static_cast<std::size_t>(program::MemoryClass::kTemporary)].value;
}

// Those of one micro-batch are most of what one rank holds, and with tp 4 a quarter of it is left.
TEST(TensorHead, NoRankHoldsWholeLogits) {
  constexpr std::int64_t kVocabulary = 16384, kTokens = 12 * 24;
  constexpr double kLogits = kTokens * kVocabulary * 4;
  Experiment experiment = experiment_of({"", "llama", 4, 1, 1, 1, 12, 1}, DType::kFloat32);
  experiment.model.vocab_size = kVocabulary;
  experiment.num_steps = 1;
  for (const auto& bytes : train(experiment).peak_bytes)
    EXPECT_LT(static_cast<double>(passing_bytes(bytes)), 0.3 * kLogits);
  const auto alone = train(on_one_rank(experiment)).peak_bytes[0];
  EXPECT_GT(static_cast<double>(passing_bytes(alone)), 0.8 * kLogits);
}

// Parameters and their gradients lie in a window of the node, what layers exchange does not.
TEST(TensorWindow, GivesTheBitsOfMessages) {
  for (const Case& value : kCases) {
    Experiment experiment = experiment_of(value, DType::kFloat32);
    const auto messages = train(experiment);
    experiment.layout.shared_window = true;
    const auto window = train(experiment);
    EXPECT_EQ(window.losses, messages.losses) << value.name;
    EXPECT_EQ(window.grad_norms, messages.grad_norms) << value.name;
    EXPECT_EQ(window.final_parameters, messages.final_parameters) << value.name;
  }
}

TEST(TensorWindow, TakesThePredictedBytes) {
  for (const Case& value : kCases) {
    Experiment experiment = experiment_of(value, DType::kBFloat16);
    experiment.layout.shared_window = true;
    expect_predicted(experiment);
  }
}

}  // namespace
}  // namespace ptrain::parity
