// Ranks that share the experts of layers, or the columns of experts, compute what one process
// computes, beside any sharding and in any pipeline.

#include <gtest/gtest.h>

#include "tests/parity/expectations.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using program::MemoryClass;
using recipe::Recompute;

// Twelve experts.
struct Case {
  const char* name;
  const char* family;
  int dp, shard, zero, ep, etp;
  std::int64_t micro_batch, num_micro_batches;
  Recompute recompute = Recompute::kNone;
  int pp = 1, num_virtual = 1;
  const char* schedule = "";
  int tp = 1, ring = 1;
  bool window = false;
};

constexpr auto kNone = Recompute::kNone;
constexpr auto kSelective = Recompute::kSelective;
constexpr auto kFull = Recompute::kFull;
constexpr Case kCases[] = {
    {"qwen3_moe_dp2_ep2", "qwen3_moe", 2, 1, 1, 2, 1, 3, 2},
    {"qwen3_moe_dp4_ep4", "qwen3_moe", 4, 1, 1, 4, 1, 1, 3, kFull},
    {"deepseek_v3_dp4_ep2", "deepseek_v3", 4, 1, 1, 2, 1, 1, 3, kSelective},
    {"mixtral_dp2_etp2", "mixtral", 2, 1, 1, 1, 2, 3, 2},
    {"qwen3_moe_shard2_zero1_ep2", "qwen3_moe", 1, 2, 1, 2, 1, 2, 3},
    {"mixtral_shard3_zero3_ep3", "mixtral", 1, 3, 3, 3, 1, 2, 2, kFull},
    {"deepseek_v3_shard4_zero2_ep4", "deepseek_v3", 1, 4, 2, 4, 1, 1, 3, kFull},
    {"qwen3_moe_shard4_zero3_ep2", "qwen3_moe", 1, 4, 3, 2, 1, 1, 3, kSelective},
    {"deepseek_v2_hsdp2x2_zero2_ep2", "deepseek_v2", 2, 2, 2, 2, 1, 1, 3},
    {"deepseek_v3_hsdp2x2_zero3_ep2_etp2", "deepseek_v3", 2, 2, 3, 2, 2, 1, 3, kFull},
    {"deepseek_v3_pp2_1f1b_dp2_ep2", "deepseek_v3", 2, 1, 1, 2, 1, 1, 6, kNone, 2, 1, "1f1b"},
    {"qwen3_moe_pp2_zb_h1_shard2_zero2_ep2", "qwen3_moe", 1, 2, 2, 2, 1, 1, 6, kNone, 2, 1,
     "zb_h1"},
    {"deepseek_v3_pp2_dualpipe_v_shard2_zero3_ep2", "deepseek_v3", 1, 2, 3, 2, 1, 1, 6, kFull, 2, 2,
     "dualpipe_v"},
    {"qwen3_moe_shard4_zero3_ep2_window", "qwen3_moe", 1, 4, 3, 2, 1, 1, 3, kNone, 1, 1, "", 1, 1,
     true},
    {"deepseek_v2_hsdp2x2_zero2_ep4_window", "deepseek_v2", 2, 2, 2, 4, 1, 1, 3, kFull, 1, 1, "", 1,
     1, true},
    {"mixtral_tp2_dp2_ep2_etp2", "mixtral", 2, 1, 1, 2, 2, 3, 2, kSelective, 1, 1, "", 2},
    {"deepseek_v3_tp2_shard2_zero3_ep2_window", "deepseek_v3", 1, 2, 3, 2, 1, 2, 3, kNone, 1, 1, "",
     2, 1, true},
    // Megatron-Core's example of folding, and the mix of PithTrain.
    {"qwen3_moe_tp2_ring2_dp2_ep4", "qwen3_moe", 2, 1, 1, 4, 1, 2, 3, kNone, 1, 1, "", 2, 2},
    {"deepseek_v3_pp2_dualpipe_v_shard4_ring2_ep2", "deepseek_v3", 1, 4, 3, 2, 1, 1, 4, kNone, 2, 2,
     "dualpipe_v", 1, 2},
};

Experiment experiment_of(const Case& value, DType dtype) {
  Experiment experiment;
  experiment.model = support::small_model(value.family);
  experiment.model.num_experts = 12;
  experiment.model.vocab_size = 64;
  experiment.dtype = dtype;
  mesh::Layout& layout = experiment.layout;
  layout.dp = value.dp;
  layout.shard = value.shard;
  layout.zero = value.zero;
  layout.ep = value.ep;
  layout.etp = value.etp;
  layout.micro_batch = value.micro_batch;
  layout.num_micro_batches = value.num_micro_batches;
  layout.recompute = value.recompute;
  layout.pp = value.pp;
  layout.num_virtual = value.num_virtual;
  layout.schedule = value.schedule;
  layout.tp = value.tp;
  layout.cp = value.ring;
  layout.shared_window = value.window;
  return experiment;
}

void expect_same_steps(const Trajectory& run, const Trajectory& truth, double bound) {
  expect_losses(run, truth, bound);
  expect_norms(run, truth, bound);
  expect_gradients(run, truth, bound);
}

// Rows that come depend on the data; the prediction is what can come.
void expect_bytes_within(const Experiment& experiment, const Trajectory& run) {
  expect_predicted_bytes(experiment, run, kPredictedOfAnyRouting);
  for (std::size_t rank = 0; rank < run.peak_bytes.size(); ++rank)
    for (const MemoryClass memory_class : {MemoryClass::kStash, MemoryClass::kTemporary}) {
      const auto index = static_cast<std::size_t>(memory_class);
      EXPECT_LE(run.peak_bytes[rank][index].value, run.predicted_bytes[rank][index].value)
          << program::to_string(memory_class) << " of rank " << rank;
    }
}

class ExpertRanks : public testing::TestWithParam<Case> {};

TEST_P(ExpertRanks, EqualOneProcessInFloat64) {
  const Experiment experiment = experiment_of(GetParam(), DType::kFloat64);
  const Trajectory run = train(experiment), truth = train(on_one_rank(experiment));
  EXPECT_EQ(run.initial_parameters, truth.initial_parameters);
  expect_same_steps(run, truth, 1e-9);
  expect_parameters(run, truth, bound_of_parameters(experiment));
  expect_bytes_within(experiment, run);
}

TEST_P(ExpertRanks, EqualOneProcessInFloat32) {
  const Experiment experiment = experiment_of(GetParam(), DType::kFloat32);
  expect_same_steps(train(experiment), train(on_one_rank(experiment)), 1e-5);
}

// Rows travel in bfloat16, and an expert's products are rounded as on one process: but for the
// order of sums, and, over etp, tp and cp, for parts that are rounded apart. Of one step, as above.
TEST_P(ExpertRanks, EqualOneProcessInBFloat16) {
  expect_experts_of_one_process_in_bfloat16(experiment_of(GetParam(), DType::kBFloat16));
}

TEST_P(ExpertRanks, RepeatBitForBit) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16})
    expect_repeats(experiment_of(GetParam(), dtype));
}

TEST_P(ExpertRanks, DropTheSameTokens) {
  Experiment limited = experiment_of(GetParam(), DType::kFloat64);
  limited.model.expert_capacity_factor = 0.8;
  expect_same_steps(train(limited), train(on_one_rank(limited)), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(All, ExpertRanks, testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

// Each expert's matrices are orthogonalised by themselves, by the rank that owns them.
TEST(MuonOfExpertRanks, EqualsOneProcess) {
  const Case value{"", "deepseek_v3", 1, 4, 3, 2, 1, 1, 3};
  Experiment shared = experiment_of(value, DType::kFloat64);
  shared.optimizer.kind = recipe::OptimizerKind::kMuon;
  const Trajectory run = train(shared), truth = train(on_one_rank(shared));
  expect_same_steps(run, truth, 1e-9);
  expect_parameters(run, truth, bound_of_parameters(shared));
}

}  // namespace
}  // namespace ptrain::parity
