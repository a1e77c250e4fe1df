// Checkpoints of any mix of axes come back in any other.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <mutex>

#include "core/base/hash.h"
#include "core/mesh/part.h"
#include "core/model/optimizer.h"
#include "core/model/slice.h"
#include "core/program/memory.h"
#include "engine/checkpoint/copy.h"
#include "engine/train/run_state.h"
#include "engine/train/save_plan.h"
#include "tests/support/ranks.h"
#include "tests/support/small_model.h"

namespace ptrain::train {
namespace {

using mesh::Layout;

run::Plan plan_of(const std::string& family, recipe::OptimizerKind kind) {
  run::Plan plan;
  recipe::Model& model = plan.recipe.model;
  model = support::small_model(family);
  model.vocab_size = 64;
  model.num_hidden_layers = 3;
  model.tie_word_embeddings = family == "gpt2";
  plan.recipe.optimizer.kind = kind;
  recipe::Shape shape;
  shape.name = "only";
  shape.steps = 10;
  plan.recipe.shapes = {shape};
  return plan;
}

Layout mix(int tp, int pp, int dp, int shard = 1) {
  Layout layout;
  layout.tp = tp, layout.pp = pp, layout.dp = dp, layout.shard = shard;
  if (pp > 1) layout.schedule = "1f1b";
  return layout;
}

std::string text_of(const Layout& layout) { return mesh::to_string(layout); }

// One rank's part of the model and its buffers, without programs.
struct Rank {
  Rank(const run::Plan& run_plan, const Layout& mix_of_axes, comm::Communicator& world_of_ranks)
      : plan(run_plan), layout(mix_of_axes), world(world_of_ranks) {
    for (const auto& buffer : mesh::plan_buffers(part, layout)) {
      const auto& spec = part.groups[static_cast<std::size_t>(buffer.group)];
      state::GroupBuffer::Place place;
      place.shard_rank = mesh::shard_rank_of(spec, layout, world.rank());
      place.counts = mesh::is_first_replica(spec, layout, world.rank());
      groups.emplace_back(part, buffer, place, arena);
    }
  }
  RankState state() { return {whole, part, plan, layout, groups, world}; }

  // Calls f(name, index in the whole, value) for every element of parameters and moments.
  template <class F>
  void each_element(F f) {
    for (auto& group : groups)
      for (const auto& run : group.runs()) {
        const auto& parameter = part.parameters[static_cast<std::size_t>(run.parameter)];
        const auto runs = model::runs_of_whole(parameter, run.begin, run.end);
        const auto walk = [&](const std::string& name, const Tensor& view) {
          for (const auto& in_whole : runs)
            for (std::int64_t i = in_whole.begin; i < in_whole.end; ++i)
              f(name, i, view.as<float>()[in_whole.place + i - in_whole.begin]);
        };
        walk(parameter.name, group.master(run));
        for (const auto& piece : group.state_pieces(run))
          walk(parameter.name + "." + piece.tensor.name, group.state(piece));
      }
  }

  const run::Plan& plan;
  const Layout layout;
  comm::Communicator& world;
  Arena arena;
  model::Architecture whole = *model::make_architecture(plan.recipe);
  model::Architecture part = *mesh::part_of(whole, layout, world.rank());
  std::vector<state::GroupBuffer> groups;
};

float value_of(const std::string& name, std::int64_t index) {
  return static_cast<float>((hash64(name) + static_cast<std::uint64_t>(index) * 2654435761U) %
                            1000003U);
}

class Parts : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "parts_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string save(const run::Plan& plan, const Layout& layout) {
    std::string step = folder_ / ("step-0000000" + std::to_string(++num_saves_));
    tests::run_ranks(layout.num_ranks(), [&](comm::Communicator& world) {
      Rank rank(plan, layout, world);
      rank.each_element(
          [](const std::string& name, std::int64_t i, float& value) { value = value_of(name, i); });
      float optimizer_step = 3;
      Progress progress;
      progress.step = 3;
      checkpoint::save(step, state_items(rank.state(), progress, 0.1, optimizer_step), world,
                       items_of_ranks(rank.state()));
    });
    return step;
  }

  static void expect_loads(const run::Plan& plan, const std::string& step, const Layout& layout) {
    std::mutex mutex;
    tests::run_ranks(layout.num_ranks(), [&](comm::Communicator& world) {
      Rank rank(plan, layout, world);
      Start start;
      start.source.emplace(step, world);
      load_state(rank.state(), start);
      const std::lock_guard lock(mutex);
      rank.each_element([&](const std::string& name, std::int64_t i, float value) {
        ASSERT_EQ(value, value_of(name, i)) << name << " " << i << " " << text_of(layout);
      });
    });
  }

  std::filesystem::path folder_;
  int num_saves_ = 0;
};

TEST_P(Parts, AnyMixIsReadByAnyOther) {
  const run::Plan plan = plan_of(GetParam(), recipe::OptimizerKind::kAdamW);
  const Layout mixes[] = {mix(2, 2, 2), mix(1, 4, 1), mix(1, 1, 1), mix(4, 1, 1), mix(2, 1, 1, 3)};
  for (const Layout& saved : mixes) {
    const std::string step = save(plan, saved);
    for (const Layout& loaded : mixes) expect_loads(plan, step, loaded);
  }
}

TEST_P(Parts, ACopyTakesWhatIsPredicted) {
  const run::Plan plan = plan_of(GetParam(), recipe::OptimizerKind::kAdamW);
  const Layout layout = mix(4, 2, 1);
  tests::run_ranks(layout.num_ranks(), [&](comm::Communicator& world) {
    Rank rank(plan, layout, world);
    const auto buffers = mesh::plan_buffers(rank.part, layout);
    const program::MemoryContext context{rank.part, layout, buffers, 16, {}, true};
    float optimizer_step = 3;
    EXPECT_EQ(program::copy_bytes(context).value,
              checkpoint::copy_bytes(state_items(rank.state(), {}, 0.1, optimizer_step)))
        << world.rank();
  });
}

// The first rank lists the tensors of all others' files by the layout.
TEST_P(Parts, WhatARankSavesFollowsFromTheLayout) {
  const run::Plan plan = plan_of(GetParam(), recipe::OptimizerKind::kAdamW);
  for (const Layout& layout : {mix(2, 2, 2), mix(1, 4, 1), mix(4, 1, 1), mix(2, 1, 1, 3)})
    tests::run_ranks(layout.num_ranks(), [&](comm::Communicator& world) {
      Rank rank(plan, layout, world);
      float optimizer_step = 3;
      const auto saved = state_items(rank.state(), {}, 0.1, optimizer_step).tensors;
      const auto planned = SavePlan(rank.whole, layout).items_of(world.rank()).tensors;
      ASSERT_EQ(planned.size(), saved.size()) << text_of(layout);
      for (std::size_t i = 0; i < saved.size(); ++i) {
        EXPECT_EQ(planned[i].key, saved[i].key);
        EXPECT_EQ(planned[i].dtype, saved[i].dtype);
        EXPECT_EQ(planned[i].shape, saved[i].shape);
        EXPECT_EQ(planned[i].box(), saved[i].box());
        EXPECT_EQ(planned[i].begin, saved[i].begin);
        EXPECT_EQ(planned[i].end, saved[i].end);
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Families, Parts, testing::Values("gpt2", "qwen3"));

}  // namespace
}  // namespace ptrain::train
