#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "engine/base/engine_error.h"
#include "engine/train/finite.h"
#include "engine/train/run_state.h"
#include "tests/support/ranks.h"
#include "tests/support/sharded_groups.h"

namespace ptrain::train {
namespace {

// The model of tests/fixtures/resume/make.py.
model::Architecture fixture_model() {
  recipe::Model config;
  config.hidden_size = 12;
  config.intermediate_size = 10;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 3;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  config.vocab_size = 320;
  return model::make_architecture(config, DType::kFloat32).value();
}

std::string fixture(const std::string& name) {
  return std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/resume/" + name;
}

using Values = std::map<std::string, std::vector<float>>;

void put(std::vector<float>& whole, const mesh::ShardRun& run, const Tensor& view) {
  std::memcpy(whole.data() + run.begin, view.data,
              static_cast<std::size_t>(run.end - run.begin) * sizeof(float));
}

// All parameters and moments as `ranks` ranks together load them.
Values loaded(const std::string& folder, int ranks, bool optimizer = true) {
  const auto architecture = fixture_model();
  Values values;
  for (const auto& parameter : architecture.parameters)
    for (const char* kind : {"", ".exp_avg", ".exp_avg_sq"})
      values[parameter.name + kind].assign(static_cast<std::size_t>(parameter.num_elements()), -9);
  run::Plan plan;
  plan.origin.checkpoint = folder;
  plan.origin.optimizer = optimizer;
  mesh::Layout layout;
  layout.shard = ranks;
  std::mutex mutex;
  tests::run_ranks(ranks, [&](comm::Communicator& world) {
    Arena arena;
    auto groups = support::sharded_groups(architecture, ranks, world.rank(), arena);
    Start start;
    start.is_own = false;
    start.source.emplace(folder, world);
    load_state({architecture, architecture, plan, layout, groups, world}, start);
    const std::lock_guard lock(mutex);
    for (auto& group : groups)
      for (const auto& run : group.runs()) {
        const auto& name = architecture.parameters[static_cast<std::size_t>(run.parameter)].name;
        put(values[name], run, group.master(run));
        for (const auto& piece : group.state_pieces(run))
          put(values[name + "." + piece.tensor.name], run, group.state(piece));
      }
  });
  return values;
}

// The same model, written by stock PyTorch under both namings.
TEST(RunState, TorchtitansStateIsTransformersStateBitForBit) {
  const Values expected = loaded(fixture("hf"), 1);
  for (const auto& [name, values] : expected)
    EXPECT_NE(values, std::vector<float>(values.size(), values.front())) << name << " is constant";
  for (const int ranks : {1, 2, 3, 5}) EXPECT_EQ(loaded(fixture("torchtitan"), ranks), expected);
}

TEST(RunState, MomentsStayZeroWhereTheOriginHasNone) {
  const Values values = loaded(fixture("torchtitan"), 2, false);
  for (const auto& [name, found] : values) {
    if (name.find(".exp_avg") == std::string::npos) continue;
    EXPECT_EQ(found, std::vector<float>(found.size(), 0)) << name;
  }
  EXPECT_EQ(values.at("lm_head.weight"), loaded(fixture("hf"), 1).at("lm_head.weight"));
}

TEST(RunState, ParametersThatAreNotNumbersAreNamedOnAllRanks) {
  const auto architecture = fixture_model();
  run::Plan plan;
  mesh::Layout layout;
  layout.shard = 2;
  tests::run_ranks(2, [&](comm::Communicator& world) {
    Arena arena;
    auto groups = support::sharded_groups(architecture, 2, world.rank(), arena);
    const RankState state{architecture, architecture, plan, layout, groups, world};
    check_finite(state, "FOLDER");
    auto& run = groups.front().runs().front();
    if (world.rank() == 1) groups.front().master(run).as<float>()[1] = HUGE_VALF;
    try {
      check_finite(state, "FOLDER");
      ADD_FAILURE() << "rank " << world.rank() << " goes on";
    } catch (const EngineError& error) {
      EXPECT_EQ(error.error().code, ExitCode::kUnusable);
      EXPECT_NE(
          std::string(error.what())
              .find("FOLDER: not finite numbers (NaN or infinity) in model.embed_tokens.weight"),
          std::string::npos)
          << error.what();
    }
  });
}

}  // namespace
}  // namespace ptrain::train
