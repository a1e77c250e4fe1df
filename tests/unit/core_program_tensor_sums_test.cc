#include <gtest/gtest.h>

#include <algorithm>

#include "core/mesh/part.h"
#include "core/program/validate.h"
#include "tests/support/compile_world.h"
#include "tests/support/small_model.h"

namespace ptrain::program {
namespace {

model::Architecture part_of(const std::string& family, const mesh::Layout& layout) {
  recipe::Model model = support::small_model(family);
  model.vocab_size = 64;
  return *mesh::part_of(*model::make_architecture(model, DType::kFloat32), layout, 0);
}

bool is_sum(const Action& action) {
  return action.kind == Kind::kExchange && action.layer_first < 0;
}

std::vector<int> groups_summed_by(const Program& program) {
  std::vector<int> groups;
  for (const Action& action : program.actions)
    if (is_sum(action)) groups.push_back(action.group);
  return groups;
}

// Norms are whole on every tensor rank, and so are GPT-2's positions, beside its embedding.
TEST(TensorSums, OnceAStepOfEachGroupThatHoldsSomethingWhole) {
  mesh::Layout layout{.tp = 2, .num_micro_batches = 2};
  const auto llama = part_of("llama", layout);
  EXPECT_EQ(groups_summed_by(*compile({llama, layout, "short"}, 0)), (std::vector<int>{1, 2, 3}));
  const auto gpt2 = part_of("gpt2", layout);
  EXPECT_EQ(groups_summed_by(*compile({gpt2, layout, "short"}, 0)), (std::vector<int>{0, 1, 2, 3}));
  layout.tp = 1;
  EXPECT_TRUE(groups_summed_by(*compile({part_of("gpt2", layout), layout, "short"}, 0)).empty());
}

TEST(TensorSums, WaitForTheLastReduction) {
  const mesh::Layout layout{.shard = 2, .tp = 2, .zero = 3, .num_micro_batches = 2};
  const auto part = part_of("llama", layout);
  const Program program = *compile({part, layout, "short"}, 0);
  for (const Action& action : program.actions) {
    if (!is_sum(action)) continue;
    ASSERT_EQ(action.after.size(), 1U);
    const Action& before = program.actions[static_cast<std::size_t>(action.after.front())];
    EXPECT_EQ(before.kind, Kind::kReduceGrad);
    EXPECT_EQ(before.group, action.group);
    const auto later = [&](const Action& other) {
      return other.id > before.id && other.kind == Kind::kReduceGrad && other.group == before.group;
    };
    EXPECT_TRUE(std::ranges::none_of(program.actions, later));
  }
}

TEST(TensorSums, TheValidatorMissesThem) {
  const mesh::Layout layout{.tp = 2};
  const auto part = part_of("llama", layout);
  auto world = support::compile_world({part, layout, "short"});
  ASSERT_TRUE(validate(world, part, layout)) << validate(world, part, layout).error().message;
  for (Program& program : world)
    for (Action& action : program.actions)
      if (is_sum(action) && action.group == 2) action.group = 1;
  const auto status = validate(world, part, layout);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("a second sum over the tensor axis"), std::string::npos)
      << status.error().message;
}

TEST(TensorSums, TheNormFindsThemMissing) {
  const mesh::Layout layout{.tp = 2};
  const auto part = part_of("llama", layout);
  auto world = support::compile_world({part, layout, "short"});
  for (Program& program : world) {
    const auto sum = std::ranges::find_if(
        program.actions, [](const Action& action) { return is_sum(action) && action.group == 3; });
    ASSERT_NE(sum, program.actions.end());
    support::drop(program, static_cast<std::size_t>(sum->id));
  }
  const auto status = validate(world, part, layout);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("gradients of g3 are not added up over the tensor axis"),
            std::string::npos)
      << status.error().message;
}

}  // namespace
}  // namespace ptrain::program
