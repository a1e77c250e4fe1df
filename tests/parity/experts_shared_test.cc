// Models with experts whose ranks share layers (tp) or rows (cp) compute what one process computes,
// in the bytes that core/program predicts; what routers choose, drop and count is the same.

#include <gtest/gtest.h>

#include "tests/parity/expectations.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using program::MemoryClass;
using recipe::Recompute;

constexpr auto kNone = Recompute::kNone;
constexpr auto kSelective = Recompute::kSelective;
constexpr auto kFull = Recompute::kFull;

// Twelve rows a step, whatever the layout.
struct Case {
  const char* name;
  const char* family;
  int tp, ring, ulysses, dp, shard, zero;
  std::int64_t micro_batch, num_micro_batches;
  Recompute recompute = kNone;
  bool window = false;
  int pp = 1, num_virtual = 1;
  const char* schedule = "";
};

// Four heads of queries and two of keys and values in the first two families: with tp 4 two ranks
// hold each of the latter.
constexpr Case kCases[] = {
    {"mixtral_tp2", "mixtral", 2, 1, 1, 1, 1, 1, 12, 1},
    {"mixtral_tp4", "mixtral", 4, 1, 1, 1, 1, 1, 3, 4},
    {"mixtral_ring2", "mixtral", 1, 2, 1, 1, 1, 1, 12, 1},
    {"mixtral_ring2_ulysses2", "mixtral", 1, 2, 2, 1, 1, 1, 6, 2, kSelective},
    {"mixtral_tp2_ring2", "mixtral", 2, 2, 1, 1, 1, 1, 3, 4, kFull},
    {"mixtral_tp2_hsdp2x2_zero3", "mixtral", 2, 1, 1, 2, 2, 3, 1, 3},
    {"mixtral_tp2_dp2_window", "mixtral", 2, 1, 1, 2, 1, 1, 3, 2, kNone, true},
    {"mixtral_tp2_pp2", "mixtral", 2, 1, 1, 1, 1, 1, 2, 6, kNone, false, 2, 1, "1f1b"},
    {"qwen3_moe_tp2_recompute", "qwen3_moe", 2, 1, 1, 1, 1, 1, 6, 2, kFull},
    {"qwen3_moe_tp4_selective", "qwen3_moe", 4, 1, 1, 1, 1, 1, 12, 1, kSelective},
    {"qwen3_moe_ulysses2", "qwen3_moe", 1, 1, 2, 1, 1, 1, 12, 1},
    {"qwen3_moe_ring2_zero3", "qwen3_moe", 1, 2, 1, 1, 1, 3, 3, 4, kFull},
    {"qwen3_moe_tp2_shard2_zero2", "qwen3_moe", 2, 1, 1, 1, 2, 2, 3, 2},
    {"qwen3_moe_pp2_ring2", "qwen3_moe", 1, 2, 1, 1, 1, 1, 2, 6, kNone, false, 2, 1, "1f1b"},
    {"deepseek_v2_tp2", "deepseek_v2", 2, 1, 1, 1, 1, 1, 12, 1},
    {"deepseek_v2_tp4_recompute", "deepseek_v2", 4, 1, 1, 1, 1, 1, 3, 4, kFull},
    {"deepseek_v2_ring2_dp2", "deepseek_v2", 1, 2, 1, 2, 1, 1, 3, 2},
    {"deepseek_v2_tp2_ulysses2", "deepseek_v2", 2, 1, 2, 1, 1, 1, 3, 4, kSelective},
    {"deepseek_v2_tp2_shard2_zero3", "deepseek_v2", 2, 1, 1, 1, 2, 3, 3, 2},
    {"deepseek_v2_ring2_shard2_window", "deepseek_v2", 1, 2, 1, 1, 2, 2, 3, 2, kNone, true},
    {"deepseek_v2_tp2_pp2_zb_h1", "deepseek_v2", 2, 1, 1, 1, 1, 1, 2, 6, kNone, false, 2, 1,
     "zb_h1"},
    {"deepseek_v3_tp2_selective", "deepseek_v3", 2, 1, 1, 1, 1, 1, 12, 1, kSelective},
    {"deepseek_v3_tp4", "deepseek_v3", 4, 1, 1, 1, 1, 1, 6, 2},
    {"deepseek_v3_ulysses2_zero3", "deepseek_v3", 1, 1, 2, 1, 1, 3, 3, 4},
    {"deepseek_v3_tp2_ring2_zero2", "deepseek_v3", 2, 2, 1, 1, 1, 2, 3, 4},
    {"deepseek_v3_tp2_ring2_ulysses2", "deepseek_v3", 2, 2, 2, 1, 1, 1, 6, 2, kFull},
    {"deepseek_v3_tp2_pp2_zb_v", "deepseek_v3", 2, 1, 1, 1, 1, 1, 2, 6, kFull, false, 2, 2, "zb_v"},
};

Experiment experiment_of(const Case& value, DType dtype) {
  Experiment experiment;
  experiment.model = support::small_model(value.family);
  experiment.model.vocab_size = 64;
  experiment.dtype = dtype;
  mesh::Layout& layout = experiment.layout;
  layout.tp = value.tp;
  layout.cp = value.ring * value.ulysses;
  layout.ulysses = value.ulysses;
  layout.dp = value.dp;
  layout.shard = value.shard;
  layout.zero = value.zero;
  layout.micro_batch = value.micro_batch;
  layout.num_micro_batches = value.num_micro_batches;
  layout.recompute = value.recompute;
  layout.shared_window = value.window;
  layout.pp = value.pp;
  layout.num_virtual = value.num_virtual;
  layout.schedule = value.schedule;
  return experiment;
}

void expect_same_steps(const Trajectory& run, const Trajectory& truth, double bound) {
  expect_losses(run, truth, bound);
  expect_norms(run, truth, bound);
  expect_gradients(run, truth, bound);
  expect_routers(run, truth, bound);
}

class SharedExperts : public testing::TestWithParam<Case> {};

TEST_P(SharedExperts, EqualOneProcessInFloat64) {
  const Experiment experiment = experiment_of(GetParam(), DType::kFloat64);
  const auto run = train(experiment);
  const auto truth = train(on_one_rank(experiment));
  EXPECT_EQ(run.initial_parameters, truth.initial_parameters);
  expect_same_steps(run, truth, 1e-9);
  expect_parameters(run, truth, bound_of_parameters(experiment));
}

// Of a few steps: later a token near a tie may go elsewhere.
TEST_P(SharedExperts, EqualOneProcessInFloat32) {
  const Experiment experiment = experiment_of(GetParam(), DType::kFloat32);
  expect_same_steps(train(experiment), train(on_one_rank(experiment)), 1e-5);
}

// Products are rounded in parts and then added up, as in TensorLayouts. What one process computes
// in bfloat16 is held to transformers in tests/unit/engine_layers_families_test.cc. Of one step:
// later a token near a tie goes elsewhere.
TEST_P(SharedExperts, EqualOneProcessInBFloat16) {
  expect_experts_of_one_process_in_bfloat16(experiment_of(GetParam(), DType::kBFloat16));
}

// An expert's room goes to the first tokens of a row, whichever ranks hold them.
TEST_P(SharedExperts, DropTheSameTokens) {
  auto experiment = experiment_of(GetParam(), DType::kFloat64);
  experiment.model.expert_capacity_factor = 0.8;
  const auto run = train(experiment), truth = train(on_one_rank(experiment));
  for (const execute::RouterReport& routers : truth.routers) EXPECT_GT(routers.dropped, 0.01);
  expect_same_steps(run, truth, 1e-9);
}

TEST_P(SharedExperts, RepeatBitForBit) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16})
    expect_repeats(experiment_of(GetParam(), dtype));
}

TEST_P(SharedExperts, TakeThePredictedBytes) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    Experiment experiment = experiment_of(GetParam(), dtype);
    experiment.rows = RowKind::kWholeDocument;
    experiment.num_steps = 2;
    expect_predicted_bytes(experiment, train(experiment), kPredictedClasses);
  }
}

// Rows that are dropped take no room, and nobody knows before how many.
TEST_P(SharedExperts, TakeAtMostThePredictedBytesWhereTokensDrop) {
  Experiment experiment = experiment_of(GetParam(), DType::kFloat32);
  experiment.rows = RowKind::kWholeDocument;
  experiment.model.expert_capacity_factor = 0.8;
  const auto run = train(experiment);
  for (std::size_t rank = 0; rank < run.peak_bytes.size(); ++rank)
    for (const MemoryClass memory_class : kPredictedClasses) {
      const auto index = static_cast<std::size_t>(memory_class);
      EXPECT_LE(run.peak_bytes[rank][index].value, run.predicted_bytes[rank][index].value)
          << program::to_string(memory_class) << " of rank " << rank;
    }
}

INSTANTIATE_TEST_SUITE_P(All, SharedExperts, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace ptrain::parity
