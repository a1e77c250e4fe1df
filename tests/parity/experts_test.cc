// Models with experts and latent attention compute on any layout what one process computes, their
// auxiliary losses and the biases of their routers among it.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/parity/expectations.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using recipe::Recompute;

// Twelve rows a step, whatever the layout.
struct Case {
  const char* name;
  int dp, shard, zero;
  std::int64_t micro_batch, num_micro_batches;
  Recompute recompute = Recompute::kNone;
  bool window = false;
  int pp = 1, num_virtual = 1;
  const char* schedule = "";
};

constexpr Case kCases[] = {
    {"accumulate4", 1, 1, 1, 3, 4},
    {"recompute", 1, 1, 1, 12, 1, Recompute::kFull},
    {"selective", 1, 1, 1, 12, 1, Recompute::kSelective},
    {"dp2", 2, 1, 1, 3, 2},
    {"shard2_zero1_window", 1, 2, 1, 3, 2, Recompute::kNone, true},
    {"shard3_zero2", 1, 3, 2, 2, 2, Recompute::kFull},
    {"shard4_zero3_selective", 1, 4, 3, 1, 3, Recompute::kSelective},
    {"hsdp2x2_zero3", 2, 2, 3, 1, 3},
    {"hsdp2x2_zero2_window", 2, 2, 2, 1, 3, Recompute::kFull, true},
    {"pp2_zb_h1_shard2_zero2", 1, 2, 2, 1, 6, Recompute::kNone, false, 2, 1, "zb_h1"},
    {"pp2_zb_v_recompute", 1, 1, 1, 2, 6, Recompute::kFull, false, 2, 2, "zb_v"},
};

Experiment experiment_of(const char* family, const Case& value, DType dtype) {
  Experiment experiment;
  experiment.model = support::small_model(family);
  experiment.dtype = dtype;
  experiment.layout.dp = value.dp;
  experiment.layout.shard = value.shard;
  experiment.layout.zero = value.zero;
  experiment.layout.micro_batch = value.micro_batch;
  experiment.layout.num_micro_batches = value.num_micro_batches;
  experiment.layout.recompute = value.recompute;
  experiment.layout.shared_window = value.window;
  experiment.layout.pp = value.pp;
  experiment.layout.num_virtual = value.num_virtual;
  experiment.layout.schedule = value.schedule;
  return experiment;
}

void expect_same_steps(const Trajectory& run, const Trajectory& truth, double bound) {
  expect_losses(run, truth, bound);
  expect_norms(run, truth, bound);
  expect_gradients(run, truth, bound);
}

class Experts : public testing::TestWithParam<std::tuple<const char*, Case>> {
 protected:
  Experiment experiment(DType dtype) const {
    return experiment_of(std::get<0>(GetParam()), std::get<1>(GetParam()), dtype);
  }
  Experiment one_rank(DType dtype) const {
    return experiment_of(std::get<0>(GetParam()), {"one", 1, 1, 1, 12, 1}, dtype);
  }
};

TEST_P(Experts, EqualOneProcessInFloat64) {
  const auto run = train(experiment(DType::kFloat64));
  const auto truth = train(one_rank(DType::kFloat64));
  expect_same_steps(run, truth, 1e-9);
  expect_parameters(run, truth, 1e-6 * 1e-2 * 3);
}

// Of a few steps: later a token near a tie may go elsewhere.
TEST_P(Experts, EqualOneProcessInFloat32) {
  const auto run = train(experiment(DType::kFloat32));
  expect_same_steps(run, train(one_rank(DType::kFloat32)), 1e-5);
}

TEST_P(Experts, RepeatBitForBit) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) expect_repeats(experiment(dtype));
}

// Tokens beyond an expert's capacity drop, counted row by row: no layout changes which.
TEST_P(Experts, DropTheSameTokens) {
  Experiment limited = experiment(DType::kFloat64), reference = one_rank(DType::kFloat64);
  const auto all = train(reference);
  limited.model.expert_capacity_factor = reference.model.expert_capacity_factor = 0.8;
  const auto truth = train(reference);
  EXPECT_GT(std::abs(truth.losses[0] - all.losses[0]), 1e-8 * all.losses[0]);
  expect_same_steps(train(limited), truth, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(FamiliesByLayouts, Experts,
                         testing::Combine(testing::Values("mixtral", "qwen3_moe", "deepseek_v2",
                                                          "deepseek_v3"),
                                          testing::ValuesIn(kCases)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param)) + "_" +
                                  std::get<1>(each.param).name;
                         });

// Each expert's matrices are orthogonalised by themselves, by the rank that owns them.
TEST(MuonOfExperts, EqualsOneProcess) {
  for (const char* family : {"mixtral", "deepseek_v3"}) {
    Experiment sharded = experiment_of(family, {"shard3", 1, 3, 3, 2, 2}, DType::kFloat64);
    Experiment one = experiment_of(family, {"one", 1, 1, 1, 12, 1}, DType::kFloat64);
    sharded.optimizer.kind = one.optimizer.kind = recipe::OptimizerKind::kMuon;
    const auto run = train(sharded), truth = train(one);
    expect_same_steps(run, truth, 1e-9);
    expect_parameters(run, truth, 1e-6 * 1e-2 * 3);
  }
}

// The bias of an expert that has more than its share falls by the rate, that of one with less
// rises, once a step; its gradient is no part of the norm.
TEST(RouterBias, FollowsTheLoads) {
  const Experiment experiment =
      experiment_of("deepseek_v3", {"one", 1, 1, 1, 3, 4}, DType::kFloat64);
  Experiment once = experiment;
  once.num_steps = 1;
  const auto run = train(once);
  const std::string name = "model.layers.1.mlp.gate.e_score_correction_bias";
  const auto& loads = run.first_gradients.at(name);
  double sum = 0, squares = 0;
  for (std::size_t e = 0; e < loads.size(); ++e) {
    sum += loads[e];
    const double wanted = loads[e] > 0 ? -0.01 : loads[e] < 0 ? 0.01 : 0;
    EXPECT_EQ(run.final_parameters.at(name)[e], wanted) << "expert " << e;
  }
  EXPECT_EQ(sum, 0);
  for (const auto& [parameter, gradient] : run.first_gradients)
    for (const double value : gradient) squares += parameter == name ? 0 : value * value;
  std::int64_t targets = 0;
  for (const auto& row : toy_rows(12, 24, 61, 7)) targets += row.num_targets();
  EXPECT_NEAR(run.grad_norms[0], std::sqrt(squares) / static_cast<double>(targets),
              1e-9 * run.grad_norms[0]);
  Experiment frozen = once;
  frozen.model.router_bias_update_rate = 0;
  EXPECT_EQ(train(frozen).final_parameters.at(name), std::vector<double>(loads.size(), 0));
}

}  // namespace
}  // namespace ptrain::parity
