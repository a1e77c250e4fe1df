// Optimizer state that waits on the disk is updated to the same bits as state in memory, and takes
// the memory that was predicted.

#include <gtest/gtest.h>

#include "tests/parity/expectations.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using program::MemoryClass;
using recipe::OptimizerKind;

struct Kind {
  const char* name;
  OptimizerKind kind;
};
constexpr Kind kKinds[] = {{"adamw", OptimizerKind::kAdamW},
                           {"muon", OptimizerKind::kMuon},
                           {"adam8bit", OptimizerKind::kAdam8bit},
                           {"lion", OptimizerKind::kLion},
                           {"sgd", OptimizerKind::kSgd}};

struct Ranks {
  const char* name;
  int dp, shard, zero;
  bool window;
  std::int64_t micro_batch, num_micro_batches;  // six rows a step
};
constexpr Ranks kRanks[] = {
    {"one", 1, 1, 1, false, 3, 2},          {"dp2", 2, 1, 1, false, 3, 1},
    {"dp2_window", 2, 1, 1, true, 3, 1},    {"shard2_zero1", 1, 2, 1, false, 3, 1},
    {"shard3_zero2", 1, 3, 2, false, 1, 2}, {"shard2_zero2_window", 1, 2, 2, true, 1, 3},
    {"shard2_zero3", 1, 2, 3, false, 3, 1}, {"shard3_zero3_window", 1, 3, 3, true, 1, 2}};

class Offload : public testing::TestWithParam<std::tuple<Kind, Ranks>> {
 protected:
  static Experiment experiment() {
    const auto& [kind, ranks] = GetParam();
    Experiment experiment;
    experiment.model = support::sizes_for_eight_bits(3);
    experiment.dtype = DType::kFloat32;
    experiment.num_steps = 30;
    experiment.learning_rate = 1e-3;
    experiment.optimizer.kind = kind.kind;
    experiment.layout.dp = ranks.dp;
    experiment.layout.shard = ranks.shard;
    experiment.layout.zero = ranks.zero;
    experiment.layout.shared_window = ranks.window;
    experiment.layout.micro_batch = ranks.micro_batch;
    experiment.layout.num_micro_batches = ranks.num_micro_batches;
    return experiment;
  }
};

TEST_P(Offload, GivesTheBitsOfResidentState) {
  Experiment experiment = this->experiment();
  const auto truth = train(experiment);
  experiment.layout.offload = recipe::Offload::kOptimizer;
  const auto run = train(experiment);
  expect_same_bits(run, truth);
}

TEST_P(Offload, TakesThePredictedBytes) {
  Experiment experiment = this->experiment();
  experiment.num_steps = 2;
  experiment.layout.offload = recipe::Offload::kOptimizer;
  const auto run = train(experiment);
  for (std::size_t rank = 0; rank < run.peak_bytes.size(); ++rank)
    for (const MemoryClass memory_class :
         {MemoryClass::kParameters, MemoryClass::kGradients, MemoryClass::kOptimizer,
          MemoryClass::kGather, MemoryClass::kStash}) {
      const auto index = static_cast<std::size_t>(memory_class);
      EXPECT_EQ(run.peak_bytes[rank][index].value, run.predicted_bytes[rank][index].value)
          << program::to_string(memory_class) << " of rank " << rank;
    }
}

std::string name_of(const testing::TestParamInfo<std::tuple<Kind, Ranks>>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(All, Offload,
                         testing::Combine(testing::ValuesIn(kKinds), testing::ValuesIn(kRanks)),
                         name_of);

}  // namespace
}  // namespace ptrain::parity
