// The state of every kind of optimizer goes through a checkpoint to any number of ranks.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/model/optimizer.h"
#include "core/program/memory.h"
#include "engine/checkpoint/copy.h"
#include "engine/train/run_state.h"
#include "tests/support/ranks.h"
#include "tests/support/sharded_groups.h"

namespace ptrain::train {
namespace {

using recipe::OptimizerKind;
using Whole = std::map<std::string, std::vector<unsigned char>>;  // bytes of each tensor

// Matrices of 4096 elements and more, of which 256 does not divide the embedding's.
run::Plan plan_of(OptimizerKind kind) {
  run::Plan plan;
  recipe::Model& config = plan.recipe.model;
  config.hidden_size = 64;
  config.intermediate_size = 70;
  config.num_hidden_layers = 2;
  config.num_attention_heads = config.num_key_value_heads = 4;
  config.head_dim = 16;
  config.vocab_size = 91;
  plan.recipe.optimizer.kind = kind;
  recipe::Shape shape;
  shape.name = "only";
  shape.steps = 10;
  plan.recipe.shapes = {shape};
  return plan;
}

// Calls f(key, item size, first byte, view) for parameters and state of a rank.
template <class F>
void each_piece(const model::Architecture& architecture, std::span<state::GroupBuffer> groups,
                F f) {
  for (auto& group : groups)
    for (const auto& run : group.runs()) {
      const auto& parameter = architecture.parameters[static_cast<std::size_t>(run.parameter)];
      f(parameter.name, run.begin, parameter.num_elements(), group.master(run));
      for (const auto& piece : group.state_pieces(run))
        f(parameter.name + "." + piece.tensor.name, piece.begin,
          piece.tensor.num_values(parameter.num_elements()), group.state(piece));
    }
}

// As `ranks` ranks: `use` gets the groups of each; then all is gathered.
template <class Use>
Whole with_ranks(OptimizerKind kind, int ranks, Use use) {
  const run::Plan plan = plan_of(kind);
  const auto architecture = *model::make_architecture(plan.recipe);
  mesh::Layout layout;
  layout.shard = ranks;
  Whole whole;
  std::mutex mutex;
  tests::run_ranks(ranks, [&](comm::Communicator& world) {
    Arena arena;
    auto groups = support::sharded_groups(architecture, ranks, world.rank(), arena);
    const RankState state{architecture, architecture, plan, layout, groups, world};
    use(state);
    const std::lock_guard lock(mutex);
    each_piece(
        architecture, groups,
        [&](const std::string& key, std::int64_t begin, std::int64_t values, const Tensor& view) {
          const std::int64_t size = size_of(view.dtype);
          auto& bytes = whole[key];
          bytes.resize(static_cast<std::size_t>(values * size));
          std::memcpy(bytes.data() + begin * size, view.data,
                      static_cast<std::size_t>(view.cols * size));
        });
  });
  return whole;
}

// Something else in every byte of a float that is still a number.
void fill(const RankState& state) {
  std::int64_t seed = 1;
  each_piece(state.architecture, state.groups,
             [&](const std::string&, std::int64_t begin, std::int64_t, const Tensor& view) {
               ++seed;
               for (std::int64_t i = 0; i < view.cols; ++i) {
                 const auto mixed = static_cast<std::uint32_t>((begin + i) * 2654435761 + seed);
                 if (view.dtype == DType::kUInt8)
                   view.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(mixed >> 13);
                 else
                   view.as<float>()[i] = static_cast<float>(mixed % 100003) / 7;
               }
             });
}

class OptimizerState : public testing::TestWithParam<OptimizerKind> {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "optimizer_state_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_P(OptimizerState, ComesBackOnAnyNumberOfRanks) {
  const std::string step = folder_ / "step-00000003";
  Progress progress;
  progress.step = 3;
  const Whole saved = with_ranks(GetParam(), 3, [&](const RankState& state) {
    fill(state);
    float optimizer_step = 3;
    checkpoint::save(step, state_items(state, progress, 0.1, optimizer_step), state.world,
                     items_of_ranks(state));
  });
  for (const int ranks : {1, 2, 3, 5}) {
    const Whole loaded = with_ranks(GetParam(), ranks, [&](const RankState& state) {
      Start start;
      start.source.emplace(step, state.world);
      load_state(state, start);
    });
    ASSERT_EQ(loaded.size(), saved.size());
    for (const auto& [key, bytes] : saved) EXPECT_EQ(loaded.at(key), bytes) << key << " " << ranks;
  }
}

// Predicted and measured bytes of the copy from which checkpoints are written behind training.
TEST_P(OptimizerState, ACopyTakesWhatIsPredicted) {
  for (const int ranks : {1, 2, 3, 5})
    with_ranks(GetParam(), ranks, [&](const RankState& state) {
      float optimizer_step = 3;
      const auto buffers = mesh::plan_buffers(state.architecture, ranks);
      const program::MemoryContext context{state.architecture, state.layout, buffers, 16,
                                           {state.world.rank(), state.world.rank()}, true};
      const Bytes predicted = program::persistent_bytes(
          context)[static_cast<std::size_t>(program::MemoryClass::kCheckpoint)];
      EXPECT_EQ(predicted.value,
                checkpoint::copy_bytes(state_items(state, {}, 0.1, optimizer_step)));
    });
}

INSTANTIATE_TEST_SUITE_P(Kinds, OptimizerState,
                         testing::Values(OptimizerKind::kAdamW, OptimizerKind::kMuon,
                                         OptimizerKind::kAdam8bit, OptimizerKind::kLion,
                                         OptimizerKind::kSgd));

}  // namespace
}  // namespace ptrain::train
