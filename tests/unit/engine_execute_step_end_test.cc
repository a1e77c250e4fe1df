#include <gtest/gtest.h>

#include <cmath>

#include "engine/execute/step_end.h"
#include "tests/support/ranks.h"
#include "tests/support/small_llama.h"

namespace ptrain::execute {
namespace {

// One rank with all of a small model's groups.
struct OneRank {
  OneRank() {
    for (const auto& plan : mesh::plan_buffers(architecture, 1))
      groups.emplace_back(architecture, plan, state::GroupBuffer::Place{}, arena);
  }
  ~OneRank() { world->close(); }
  Tensor gradient(int parameter) { return group(parameter).gradient(parameter); }
  Tensor parameter(int parameter) { return group(parameter).parameter(parameter); }
  state::GroupBuffer& group(int parameter) {
    return groups[static_cast<std::size_t>(
        architecture.parameters[static_cast<std::size_t>(parameter)].group)];
  }
  int find(std::string_view name) const {
    for (std::size_t i = 0; i < architecture.parameters.size(); ++i)
      if (architecture.parameters[i].name == name) return static_cast<int>(i);
    return -1;
  }

  model::Architecture architecture = support::small_llama(1);
  Arena arena;
  std::vector<state::GroupBuffer> groups;
  std::unique_ptr<comm::Communicator> world = comm::make_single();
};

// What is added to the gradient of a parameter that no backward wrote, such as another rank's,
// stays.
TEST(StepEnd, GradientsAreFilledOnce) {
  OneRank rank;
  state::GroupBuffer& group = rank.group(0);
  group.fill_gradients();
  const Tensor gradient = rank.gradient(0);
  gradient.as<float>()[0] = 5;
  group.fill_gradients();
  EXPECT_EQ(gradient.as<float>()[0], 5);
}

// By hand: gradients 30 and 40 summed over 10 targets are a mean gradient of norm 5; clipped to 2.5
// it is halved.
TEST(StepEnd, ClipsTheNormOfTheMeanGradient) {
  OneRank rank;
  rank.gradient(0).as<float>()[3] = 30;
  rank.gradient(static_cast<int>(rank.architecture.parameters.size()) - 1).as<float>()[1] = 40;
  const auto result = reduce_norm(rank.groups, {20.0, 10}, 2.5, *rank.world);
  EXPECT_DOUBLE_EQ(result.loss, 2.0);
  EXPECT_EQ(result.num_targets, 10);
  EXPECT_NEAR(result.grad_norm, 5.0, 1e-12);
  EXPECT_NEAR(result.scale, 0.5 / 10, 1e-7);
  EXPECT_TRUE(result.finite);
}

// Two ranks hold copies of group 0, of which only the first counts.
TEST(StepEnd, TheNormCountsCopiesOnce) {
  tests::run_ranks(2, [](comm::Communicator& world) {
    const model::Architecture architecture = support::small_llama(1);
    Arena arena;
    state::GroupBuffer::Place place;
    place.counts = world.rank() == 0;
    std::vector<state::GroupBuffer> groups;
    groups.emplace_back(architecture, mesh::plan_buffers(architecture, 1).front(), place, arena);
    groups.front().gradient(0).as<float>()[3] = 30;
    const auto result = reduce_norm(groups, {1.0, 5}, 0, world);
    EXPECT_EQ(result.num_targets, 10);
    EXPECT_NEAR(result.grad_norm, 3.0, 1e-12);
  });
}

TEST(StepEnd, ASmallNormIsNotClipped) {
  OneRank rank;
  rank.gradient(0).as<float>()[3] = 30;
  EXPECT_DOUBLE_EQ(reduce_norm(rank.groups, {1.0, 10}, 4.0, *rank.world).scale, 0.1);
  EXPECT_DOUBLE_EQ(reduce_norm(rank.groups, {1.0, 10}, 0.0, *rank.world).scale, 0.1);
}

// With zero gradients AdamW only decays: matrices by learning rate x decay, norms not at all.
TEST(StepEnd, NormsDoNotDecay) {
  OneRank rank;
  const int norm = rank.find("model.norm.weight");
  const int matrix = rank.find("model.layers.0.self_attn.q_proj.weight");
  ASSERT_TRUE(norm >= 0 && matrix >= 0);
  for (const int parameter : {norm, matrix}) rank.parameter(parameter).as<float>()[0] = 1;
  StepSettings settings;
  settings.learning_rate = 0.5;
  settings.optimizer.adamw.weight_decay = 0.25;
  for (auto& group : rank.groups) apply_optimizer(rank.architecture, settings, {}, group);
  EXPECT_FLOAT_EQ(rank.parameter(norm).as<float>()[0], 1.0F);
  EXPECT_FLOAT_EQ(rank.parameter(matrix).as<float>()[0], 0.875F);
}

TEST(StepEnd, ANonFiniteStepChangesNothing) {
  OneRank rank;
  rank.gradient(0).as<float>()[0] = std::nanf("");
  rank.parameter(0).as<float>()[1] = 3;
  const auto result = reduce_norm(rank.groups, {1.0, 1}, 1.0, *rank.world);
  EXPECT_FALSE(result.finite);
  for (auto& group : rank.groups) apply_optimizer(rank.architecture, {}, result, group);
  EXPECT_FLOAT_EQ(rank.parameter(0).as<float>()[1], 3.0F);
  EXPECT_FLOAT_EQ(rank.parameter(0).as<float>()[0], 0.0F);
}

}  // namespace
}  // namespace ptrain::execute
