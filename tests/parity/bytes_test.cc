// The bytes that core/program predicts are those that the engine's arena counts, to the byte. The
// arena counts at take and give and knows nothing of programs.

#include <gtest/gtest.h>

#include "tests/parity/expectations.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using program::MemoryClass;

constexpr MemoryClass kExact[] = {MemoryClass::kParameters, MemoryClass::kGradients,
                                  MemoryClass::kOptimizer, MemoryClass::kGather,
                                  MemoryClass::kStash};

struct Shape {
  std::int64_t hidden, intermediate, layers, heads, kv_heads, vocabulary, sequence;
  bool tied;
  DType dtype;
};

constexpr Shape kShapes[] = {
    {16, 44, 2, 4, 2, 61, 24, false, DType::kFloat32},
    {16, 44, 2, 4, 4, 61, 24, true, DType::kFloat32},
    {8, 24, 1, 2, 1, 33, 16, false, DType::kFloat64},
    {24, 64, 3, 3, 3, 50, 8, false, DType::kFloat32},
    {32, 96, 1, 4, 1, 320, 20, true, DType::kFloat64},
    {16, 40, 4, 2, 2, 17, 12, false, DType::kFloat32},
    {12, 36, 2, 6, 3, 29, 10, true, DType::kFloat32},
    {40, 108, 2, 5, 5, 64, 7, false, DType::kFloat32},
    {16, 16, 1, 1, 1, 128, 33, false, DType::kFloat64},
    {64, 172, 2, 8, 2, 100, 16, true, DType::kFloat32},
    {16, 44, 2, 4, 2, 61, 24, false, DType::kBFloat16},
    {32, 92, 3, 4, 4, 77, 9, true, DType::kBFloat16},
};

struct LayoutCase {
  int dp, shard, zero;
  std::int64_t micro_batch, num_micro_batches;
  recipe::Recompute recompute;
  int prefetch;
};

constexpr auto kNone = recipe::Recompute::kNone;
constexpr auto kSelective = recipe::Recompute::kSelective;
constexpr auto kFull = recipe::Recompute::kFull;
constexpr LayoutCase kLayouts[] = {
    {1, 1, 1, 2, 2, kNone, 1},      {2, 1, 1, 1, 2, kFull, 1},      {1, 2, 1, 1, 2, kNone, 1},
    {1, 2, 2, 2, 1, kNone, 0},      {1, 3, 3, 1, 2, kNone, 1},      {1, 2, 3, 1, 3, kFull, 2},
    {2, 2, 3, 1, 2, kNone, 0},      {2, 2, 2, 1, 2, kFull, 1},      {1, 1, 1, 2, 2, kSelective, 1},
    {1, 2, 1, 1, 2, kSelective, 1}, {1, 3, 3, 1, 2, kSelective, 1}, {2, 2, 2, 1, 2, kSelective, 0},
};

class Bytes : public testing::TestWithParam<std::tuple<int, int, bool>> {};

Experiment experiment_in(const LayoutCase& value, bool window) {
  Experiment experiment;
  experiment.num_steps = 2;
  experiment.layout.dp = value.dp;
  experiment.layout.shard = value.shard;
  experiment.layout.zero = value.zero;
  experiment.layout.micro_batch = value.micro_batch;
  experiment.layout.num_micro_batches = value.num_micro_batches;
  experiment.layout.recompute = value.recompute;
  experiment.layout.prefetch = value.prefetch;
  experiment.layout.shared_window = window;
  return experiment;
}

void expect_predicted(const Experiment& experiment) {
  const auto run = train(experiment);
  expect_predicted_bytes(experiment, run, kExact);
  for (std::size_t rank = 0; rank < run.peak_bytes.size(); ++rank) {
    const auto& measured = run.peak_bytes[rank];
    const auto& predicted = run.predicted_bytes[rank];
    // Short documents take less than the whole rows that it is predicted for.
    constexpr auto kTemporary = static_cast<std::size_t>(MemoryClass::kTemporary);
    if (experiment.rows == RowKind::kWholeDocument) {
      EXPECT_EQ(measured[kTemporary].value, predicted[kTemporary].value) << "of rank " << rank;
    } else {
      EXPECT_LE(measured[kTemporary].value, predicted[kTemporary].value) << "of rank " << rank;
    }
  }
}

TEST_P(Bytes, PredictedEqualMeasured) {
  const Shape& shape = kShapes[std::get<0>(GetParam())];
  Experiment experiment = experiment_in(kLayouts[std::get<1>(GetParam())], std::get<2>(GetParam()));
  experiment.model.hidden_size = shape.hidden;
  experiment.model.intermediate_size = shape.intermediate;
  experiment.model.num_hidden_layers = shape.layers;
  experiment.model.num_attention_heads = shape.heads;
  experiment.model.num_key_value_heads = shape.kv_heads;
  experiment.model.head_dim = shape.hidden / shape.heads / 2 * 2;
  experiment.model.vocab_size = shape.vocabulary;
  experiment.model.tie_word_embeddings = shape.tied;
  experiment.dtype = shape.dtype;
  experiment.sequence = shape.sequence;
  if (!experiment.layout.shared_window) experiment.rows = RowKind::kWholeDocument;
  expect_predicted(experiment);
}

INSTANTIATE_TEST_SUITE_P(ShapesByLayouts, Bytes,
                         testing::Combine(testing::Range(0, static_cast<int>(std::size(kShapes))),
                                          testing::Range(0, static_cast<int>(std::size(kLayouts))),
                                          testing::Bool()));

// Of few tokens, so that orthogonalising a matrix takes more than any layer.
TEST(MuonBytes, PredictedEqualMeasured) {
  Experiment experiment = experiment_in(kLayouts[0], false);
  experiment.model = support::small_model("llama");
  experiment.dtype = DType::kFloat32;
  experiment.optimizer.kind = recipe::OptimizerKind::kMuon;
  experiment.rows = RowKind::kWholeDocument;
  experiment.sequence = 2;
  expect_predicted(experiment);
}

class FamilyBytes : public testing::TestWithParam<std::tuple<const char*, DType, int>> {};

TEST_P(FamilyBytes, PredictedEqualMeasured) {
  Experiment experiment = experiment_in(kLayouts[std::get<2>(GetParam())], true);
  experiment.model = support::small_model(std::get<0>(GetParam()));
  experiment.dtype = std::get<1>(GetParam());
  experiment.rows = RowKind::kWholeDocument;
  expect_predicted(experiment);
}

INSTANTIATE_TEST_SUITE_P(
    FamiliesByLayouts, FamilyBytes,
    testing::Combine(testing::Values("llama", "mistral", "qwen2", "qwen3", "gpt2", "gemma2",
                                     "gemma3", "mixtral", "qwen3_moe", "deepseek_v2",
                                     "deepseek_v3"),
                     testing::Values(DType::kFloat32, DType::kFloat64, DType::kBFloat16),
                     testing::Values(0, 1, 4, 8, 10)));

}  // namespace
}  // namespace ptrain::parity
