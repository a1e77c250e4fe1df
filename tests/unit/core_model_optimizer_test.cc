#include <gtest/gtest.h>

#include <map>

#include "core/model/optimizer.h"
#include "core/model/optimizer_state.h"

namespace ptrain::model {
namespace {

using recipe::OptimizerKind;

// A block [64, 64] of 4096 elements, and one norm, between embedding and head.
Architecture small(OptimizerKind kind, double momentum = 0.9) {
  Architecture architecture;
  const auto add = [&](LayerKind layer, std::string name, std::vector<std::int64_t> shape) {
    if (architecture.layers.empty() || architecture.layers.back().kind != layer) {
      architecture.groups.push_back({architecture.num_groups()});
      architecture.layers.emplace_back().kind = layer;
    }
    ParameterSpec parameter;
    parameter.name = std::move(name);
    parameter.shape = std::move(shape);
    parameter.group = architecture.num_groups() - 1;
    architecture.parameters.push_back(std::move(parameter));
  };
  add(LayerKind::kEmbedding, "embedding", {100, 64});
  add(LayerKind::kBlock, "norm", {64});
  add(LayerKind::kBlock, "matrix", {64, 64});
  add(LayerKind::kBlock, "narrow", {64, 63});
  add(LayerKind::kHead, "head", {100, 64});
  recipe::Optimizer optimizer;
  optimizer.kind = kind;
  optimizer.momentum = momentum;
  use_optimizer(architecture, optimizer);
  return architecture;
}

std::vector<UpdateRule> rules(const Architecture& architecture) {
  std::vector<UpdateRule> list;
  for (const auto& parameter : architecture.parameters) list.push_back(parameter.rule);
  return list;
}

TEST(UseOptimizer, MuonIsForHiddenMatrices) {
  using enum UpdateRule;
  const Architecture muon = small(OptimizerKind::kMuon);
  EXPECT_EQ(rules(muon), (std::vector{kAdamW, kAdamW, kMuon, kMuon, kAdamW}));
  EXPECT_EQ(muon.parameters[2].block_elements(), 4096);
  EXPECT_EQ(muon.parameters[0].block_elements(), 1);
}

// 64 x 63 is below 4096 elements.
TEST(UseOptimizer, SmallTensorsKeepWholeNumbers) {
  using enum UpdateRule;
  const Architecture bytes = small(OptimizerKind::kAdam8bit);
  EXPECT_EQ(rules(bytes), (std::vector{kAdam8bit, kAdamW, kAdam8bit, kAdamW, kAdam8bit}));
  EXPECT_EQ(bytes.parameters[2].block_elements(), 256);
  EXPECT_EQ(bytes.parameters[3].block_elements(), 1);
}

TEST(UseOptimizer, SgdWithoutMomentumKeepsNothing) {
  EXPECT_EQ(rules(small(OptimizerKind::kSgd)), std::vector(5, UpdateRule::kSgdMomentum));
  EXPECT_EQ(rules(small(OptimizerKind::kSgd, 0)), std::vector(5, UpdateRule::kSgd));
  EXPECT_TRUE(state_of(small(OptimizerKind::kSgd, 0).parameters[0], DType::kFloat32).empty());
}

// Bytes an element of the state that torch.optim keeps for a parameter of 6400; in 8 bits: two
// codes an element, and two float32 for each of 25 runs.
TEST(StateOf, HasTheNamesAndSizesOfTorch) {
  const auto bytes = [](OptimizerKind kind, std::size_t parameter) {
    std::map<std::string, std::int64_t> sizes;
    const auto architecture = small(kind);
    const auto& spec = architecture.parameters[parameter];
    for (const auto& tensor : state_of(spec, DType::kFloat32))
      sizes[tensor.name] = tensor.num_values(spec.num_elements()) * size_of(tensor.dtype);
    return sizes;
  };
  using Sizes = std::map<std::string, std::int64_t>;
  EXPECT_EQ(bytes(OptimizerKind::kAdamW, 0), (Sizes{{"exp_avg", 25600}, {"exp_avg_sq", 25600}}));
  EXPECT_EQ(bytes(OptimizerKind::kLion, 0), (Sizes{{"exp_avg", 25600}}));
  EXPECT_EQ(bytes(OptimizerKind::kSgd, 0), (Sizes{{"momentum_buffer", 25600}}));
  EXPECT_EQ(bytes(OptimizerKind::kMuon, 2), (Sizes{{"momentum_buffer", 16384}}));
  EXPECT_EQ(bytes(OptimizerKind::kAdam8bit, 0), (Sizes{{"exp_avg", 6400},
                                                       {"exp_avg_absmax", 100},
                                                       {"exp_avg_sq", 6400},
                                                       {"exp_avg_sq_absmax", 100}}));
}

TEST(StateOf, OfRunsHasOneDim) {
  const auto architecture = small(OptimizerKind::kAdam8bit);
  const auto state = state_of(architecture.parameters[0], DType::kFloat64);
  EXPECT_EQ(state[0].shape(architecture.parameters[0]), (std::vector<std::int64_t>{100, 64}));
  EXPECT_EQ(state[1].shape(architecture.parameters[0]), (std::vector<std::int64_t>{25}));
  EXPECT_EQ(state[1].dtype, DType::kFloat32);
}

}  // namespace
}  // namespace ptrain::model
