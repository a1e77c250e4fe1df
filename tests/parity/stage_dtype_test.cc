// Stages of a pipeline that multiply in dtypes of their own compute what one process computes whose
// layers do, in the bytes that core/program predicts.

#include <gtest/gtest.h>

#include "core/mesh/stages.h"
#include "engine/base/engine_error.h"
#include "tests/parity/expectations.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using recipe::Recompute;
using DTypes = std::vector<DType>;

constexpr auto kNarrow = DType::kBFloat16;
constexpr auto kWide = DType::kFloat32;

struct Case {
  const char* name;
  const char* family;
  const char* schedule;
  int pp, num_virtual;
  DTypes stages;
  int shard = 1, zero = 1, tp = 1, ring = 1, ep = 1;
  Recompute recompute = Recompute::kNone;
  bool tied = false;
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

const std::vector<Case> kCases = {
    {"llama_1f1b", "llama", "1f1b", 2, 1, {kNarrow, kWide}},
    {"llama_zb_v_recompute",
     "llama",
     "zb_v",
     2,
     2,
     {kWide, kNarrow, kNarrow, kWide},
     2,
     3,
     1,
     1,
     1,
     Recompute::kFull,
     true},
    {"gpt2_interleaved_tied",
     "gpt2",
     "interleaved_1f1b",
     2,
     2,
     {kNarrow, kWide, kNarrow, kNarrow},
     2,
     2,
     1,
     1,
     1,
     Recompute::kSelective,
     true},
    {"gemma2_zb_h1_tp2", "gemma2", "zb_h1", 2, 1, {kWide, kNarrow}, 1, 1, 2},
    {"qwen3_1f1b_ring2", "qwen3", "1f1b", 2, 1, {kNarrow, kWide}, 1, 1, 1, 2},
    {"deepseek_v3_dualpipe_v_ep2",
     "deepseek_v3",
     "dualpipe_v",
     2,
     2,
     {kWide, kNarrow, kWide, kNarrow},
     2,
     3,
     1,
     1,
     2},
};

// The same dtype for all layers of a stage.
DTypes by_layer(const Experiment& experiment, const DTypes& stages) {
  const auto num_layers = static_cast<int>(experiment.model.num_hidden_layers) + 2;
  const auto layers = value_or_throw(mesh::layers_of_stages(experiment.layout, num_layers));
  DTypes dtypes;
  for (std::size_t stage = 0; stage < layers.size(); ++stage)
    dtypes.resize(static_cast<std::size_t>(layers[stage].end), stages[stage]);
  return dtypes;
}

// In the recipe's precision.
Experiment uniform(const Case& value, DType dtype) {
  Experiment experiment;
  experiment.model = support::small_model(value.family);
  experiment.model.vocab_size = 64;
  experiment.model.num_hidden_layers = 4;
  experiment.model.tie_word_embeddings = value.tied;
  experiment.dtype = dtype;
  mesh::Layout& layout = experiment.layout;
  layout.pp = value.pp;
  layout.num_virtual = value.num_virtual;
  layout.schedule = value.schedule;
  layout.shard = value.shard;
  layout.zero = value.zero;
  layout.tp = value.tp;
  layout.cp = value.ring;
  layout.ep = value.ep;
  layout.recompute = value.recompute;
  layout.num_micro_batches = 4;
  return experiment;
}

Experiment mixed(const Case& value, DType dtype = kNarrow) {
  Experiment experiment = uniform(value, dtype);
  experiment.layout.layer_dtypes = by_layer(experiment, value.stages);
  return experiment;
}

class StageDTypes : public testing::TestWithParam<Case> {};

TEST_P(StageDTypes, AllAlikeAreTheBitsOfThatPrecision) {
  const DTypes wide(GetParam().stages.size(), kWide), narrow(GetParam().stages.size(), kNarrow);
  const Trajectory in_wide = train(uniform(GetParam(), kWide));
  const Trajectory in_narrow = train(uniform(GetParam(), kNarrow));
  EXPECT_NE(in_wide.losses, in_narrow.losses);
  Experiment experiment = uniform(GetParam(), kNarrow);
  experiment.layout.layer_dtypes = by_layer(experiment, wide);
  expect_same_bits(train(experiment), in_wide);
  experiment = uniform(GetParam(), kWide);
  experiment.layout.layer_dtypes = by_layer(experiment, narrow);
  expect_same_bits(train(experiment), in_narrow);
}

// Products are rounded in the same layers; over tp they are rounded in parts, and a router that
// reads such sums may send a token near a tie to other experts.
TEST_P(StageDTypes, EqualOneProcessWithTheDTypesOfItsLayers) {
  const Experiment experiment = mixed(GetParam());
  const Trajectory run = train(experiment), truth = train(on_one_rank(experiment));
  EXPECT_EQ(run.initial_parameters, truth.initial_parameters);
  const bool in_parts = GetParam().tp * GetParam().ring > 1;
  expect_losses(run, truth, in_parts ? 5e-4 : 2e-4);
  expect_gradients(run, truth, in_parts ? 2e-2 : 1e-5, "k_proj.bias");
}

// A stage in bfloat16 costs what rounding in some layers costs, and one in float32 saves that.
TEST_P(StageDTypes, LieBetweenThoseOfAllLayers) {
  const Trajectory exact = train(uniform(GetParam(), kWide)), run = train(mixed(GetParam()));
  EXPECT_NE(run.losses, exact.losses);
  EXPECT_NE(run.losses, train(uniform(GetParam(), kNarrow)).losses);
  expect_losses(run, exact, 3e-3);
}

TEST_P(StageDTypes, DoNotDependOnThePrecisionOfTheRecipe) {
  expect_same_bits(train(mixed(GetParam(), kNarrow)), train(mixed(GetParam(), kWide)));
}

TEST_P(StageDTypes, TakeThePredictedBytes) {
  Experiment experiment = mixed(GetParam());
  experiment.rows = RowKind::kWholeDocument;
  experiment.num_steps = 2;
  const Trajectory run = train(experiment);
  expect_predicted_bytes(experiment, run, kPredictedOfAnyRouting);
  if (GetParam().ep == 1) expect_predicted_bytes(experiment, run, kPredictedClasses);
}

INSTANTIATE_TEST_SUITE_P(All, StageDTypes, testing::ValuesIn(kCases),
                         [](const auto& named) { return std::string(named.param.name); });

// A window holds parameters of both.
TEST(StageDTypesOfOneRank, GiveTheBitsOfMessagesInAWindow) {
  Experiment experiment = mixed(kCases.front());
  const DTypes dtypes = experiment.layout.layer_dtypes;
  experiment.layout = {};
  experiment.layout.shard = 2;
  experiment.layout.micro_batch = 2;
  experiment.layout.layer_dtypes = dtypes;
  const Trajectory messages = train(experiment);
  experiment.layout.shared_window = true;
  expect_same_bits(train(experiment), messages);
}

}  // namespace
}  // namespace ptrain::parity
