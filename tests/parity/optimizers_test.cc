// Every kind of optimizer gives the same update on any shards, and its state takes the bytes that
// were predicted.

#include <gtest/gtest.h>

#include "tests/parity/trajectory.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using recipe::OptimizerKind;

struct Kind {
  const char* name;
  OptimizerKind kind;
  double learning_rate;
};

constexpr Kind kKinds[] = {{"muon", OptimizerKind::kMuon, 1e-2},
                           {"adam8bit", OptimizerKind::kAdam8bit, 1e-2},
                           {"lion", OptimizerKind::kLion, 1e-3},
                           {"sgd", OptimizerKind::kSgd, 1e-2}};

struct Shards {
  const char* name;
  int dp, shard, zero;
  std::int64_t micro_batch, num_micro_batches;
};

// Twelve rows a step, whatever the layout.
constexpr Shards kShards[] = {{"shard2_zero1", 1, 2, 1, 3, 2},  {"shard2_zero3", 1, 2, 3, 3, 2},
                              {"shard3_zero1", 1, 3, 1, 2, 2},  {"shard3_zero3", 1, 3, 3, 2, 2},
                              {"hsdp2x2_zero3", 2, 2, 3, 1, 3}, {"shard6_zero2", 1, 6, 2, 2, 1}};

Experiment experiment_of(const Kind& kind, const Shards& shards, DType dtype, bool window) {
  Experiment experiment;
  experiment.model = support::sizes_for_eight_bits(2);
  experiment.dtype = dtype;
  experiment.optimizer.kind = kind.kind;
  experiment.learning_rate = kind.learning_rate;
  experiment.layout.dp = shards.dp;
  experiment.layout.shard = shards.shard;
  experiment.layout.zero = shards.zero;
  experiment.layout.micro_batch = shards.micro_batch;
  experiment.layout.num_micro_batches = shards.num_micro_batches;
  experiment.layout.shared_window = window;
  return experiment;
}

class Optimizers : public testing::TestWithParam<std::tuple<Kind, Shards, bool>> {
 protected:
  Experiment experiment_in(DType dtype) const {
    return experiment_of(std::get<0>(GetParam()), std::get<1>(GetParam()), dtype,
                         std::get<2>(GetParam()));
  }
  Experiment one_rank_in(DType dtype) const {
    return experiment_of(std::get<0>(GetParam()), {"one", 1, 1, 1, 12, 1}, dtype, false);
  }
};

// Rounding of a gradient may turn the sign of a step of Lion, and a code of eight bits, where the
// value lies on the edge: in fp64 no value of these does.
TEST_P(Optimizers, EqualOneProcess) {
  const auto run = train(experiment_in(DType::kFloat64));
  const auto truth = train(one_rank_in(DType::kFloat64));
  for (std::size_t i = 0; i < truth.losses.size(); ++i)
    EXPECT_NEAR(run.losses[i], truth.losses[i], 1e-9 * truth.losses[i]) << "step " << i + 1;
  for (const auto& [name, parameter] : truth.final_parameters)
    EXPECT_LT(relative_distance(run.final_parameters.at(name), parameter), 1e-9) << name;
}

// As many ranks that hold everything each add the same gradients in the same order.
TEST_P(Optimizers, GiveTheBitsOfReplicas) {
  auto experiment = experiment_in(DType::kFloat32);
  auto replicas = experiment;
  experiment.clip_norm = replicas.clip_norm = 0;  // the norm is a sum over shards
  replicas.layout.dp *= replicas.layout.shard;
  replicas.layout.shard = 1;
  replicas.layout.zero = 1;
  // Sums of several micro-batches are added up before the reduction there, and after it here.
  if (experiment.layout.zero > 1 && experiment.layout.num_micro_batches > 1) GTEST_SKIP();
  const auto run = train(experiment);
  const auto truth = train(replicas);
  EXPECT_EQ(run.losses, truth.losses);
  EXPECT_EQ(run.final_parameters, truth.final_parameters);
}

TEST_P(Optimizers, TakeThePredictedBytes) {
  using program::MemoryClass;
  const auto run = train(experiment_in(DType::kFloat32));
  for (std::size_t rank = 0; rank < run.peak_bytes.size(); ++rank)
    for (const MemoryClass memory_class : {MemoryClass::kParameters, MemoryClass::kGradients,
                                           MemoryClass::kOptimizer, MemoryClass::kGather}) {
      const auto index = static_cast<std::size_t>(memory_class);
      EXPECT_EQ(run.peak_bytes[rank][index].value, run.predicted_bytes[rank][index].value)
          << program::to_string(memory_class) << " of rank " << rank;
    }
}

std::string name_of(const testing::TestParamInfo<std::tuple<Kind, Shards, bool>>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name +
         (std::get<2>(info.param) ? "_window" : "_messages");
}

INSTANTIATE_TEST_SUITE_P(All, Optimizers,
                         testing::Combine(testing::ValuesIn(kKinds), testing::ValuesIn(kShards),
                                          testing::Bool()),
                         name_of);

// Every setting of a kind moves its parameters elsewhere.
struct Setting {
  const char* name;
  OptimizerKind kind;
  void (*change)(recipe::Optimizer&);
};

constexpr auto betas0 = [](recipe::Optimizer& o) { o.beta1 = 0.7; };
constexpr auto betas1 = [](recipe::Optimizer& o) { o.beta2 = 0.7; };
constexpr auto eps = [](recipe::Optimizer& o) { o.eps = 1e-2; };
constexpr auto decay = [](recipe::Optimizer& o) { o.weight_decay = 0.5; };
constexpr auto momentum = [](recipe::Optimizer& o) { o.momentum = 0.5; };
constexpr auto no_momentum = [](recipe::Optimizer& o) { o.momentum = 0; };
constexpr auto nesterov = [](recipe::Optimizer& o) { o.nesterov = false; };
constexpr auto scale = [](recipe::Optimizer& o) { o.muon_scale = recipe::MuonScale::kOriginal; };
constexpr auto ratio = [](recipe::Optimizer& o) { o.adamw_ratio = 0.5; };

constexpr Setting kSettings[] = {{"betas.0", OptimizerKind::kAdamW, betas0},
                                 {"betas.1", OptimizerKind::kAdamW, betas1},
                                 {"eps", OptimizerKind::kAdamW, eps},
                                 {"weight_decay", OptimizerKind::kAdamW, decay},
                                 {"betas.0", OptimizerKind::kAdam8bit, betas0},
                                 {"betas.1", OptimizerKind::kAdam8bit, betas1},
                                 {"eps", OptimizerKind::kAdam8bit, eps},
                                 {"weight_decay", OptimizerKind::kAdam8bit, decay},
                                 {"betas.0", OptimizerKind::kLion, betas0},
                                 {"betas.1", OptimizerKind::kLion, betas1},
                                 {"weight_decay", OptimizerKind::kLion, decay},
                                 {"momentum", OptimizerKind::kSgd, momentum},
                                 {"momentum", OptimizerKind::kSgd, no_momentum},
                                 {"nesterov", OptimizerKind::kSgd, nesterov},
                                 {"weight_decay", OptimizerKind::kSgd, decay},
                                 {"betas.0", OptimizerKind::kMuon, betas0},
                                 {"betas.1", OptimizerKind::kMuon, betas1},
                                 {"eps", OptimizerKind::kMuon, eps},
                                 {"weight_decay", OptimizerKind::kMuon, decay},
                                 {"momentum", OptimizerKind::kMuon, momentum},
                                 {"nesterov", OptimizerKind::kMuon, nesterov},
                                 {"muon_scale", OptimizerKind::kMuon, scale},
                                 {"adamw_ratio", OptimizerKind::kMuon, ratio}};

TEST(Settings, ChangeTheTrajectory) {
  for (const Setting& setting : kSettings) {
    auto before =
        experiment_of({"", setting.kind, 1e-2}, {"one", 1, 1, 1, 12, 1}, DType::kFloat64, false);
    before.num_steps = 4;
    auto after = before;
    setting.change(after.optimizer);
    EXPECT_TRUE(recipe::uses(setting.kind, setting.name)) << setting.name;
    const auto one = train(before), other = train(after);
    double largest = 0;
    for (const auto& [name, parameter] : one.final_parameters)
      largest = std::max(largest, relative_distance(other.final_parameters.at(name), parameter));
    EXPECT_GT(largest, 1e-6) << setting.name << " of kind " << static_cast<int>(setting.kind);
  }
}

}  // namespace
}  // namespace ptrain::parity
