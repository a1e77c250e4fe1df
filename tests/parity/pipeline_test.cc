// Every schedule of a pipeline computes what one process computes, whatever is mixed with it, and
// holds the bytes that were predicted.

#include <gtest/gtest.h>

#include <ostream>
#include <random>

#include "core/schedule/csv.h"
#include "tests/parity/expectations.h"
#include "tests/support/random_schedule.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

using program::MemoryClass;
using recipe::Recompute;

// Two ranks, three stages each, two pairs of neighbours on one rank; backwards split or whole.
constexpr const char* kByHand =
    "0F0,0F1,3F0,4F0,3F1,4F1,4I0,3I0,4W0,4B1,3B1,0B0,3W0,0I1,0W1\n"
    "1F0,2F0,1F1,2F1,5F0,5B0,5F1,5B1,2I0,1B0,2B1,2W0,1B1\n";

struct Case {
  const char* name;
  const char* schedule;
  int pp, num_virtual;
  std::int64_t num_micro_batches;
  int dp = 1, shard = 1, zero = 1;
  Recompute recompute = Recompute::kNone;
  bool tied = false;
  const char* family = nullptr;
  std::vector<int> stage_layers = {};
  std::int64_t micro_batch = 1;
  std::vector<Recompute> stage_recompute = {};
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

recipe::Model model_of(const Case& value) {
  recipe::Model model =
      value.family == nullptr ? support::small_sizes() : support::small_model(value.family);
  if (value.family == nullptr) model.tie_word_embeddings = value.tied;
  model.num_hidden_layers = 6;
  return model;
}

Experiment experiment_of(const Case& value, DType dtype) {
  Experiment experiment;
  experiment.model = model_of(value);
  experiment.dtype = dtype;
  experiment.sequence = 12;
  mesh::Layout& layout = experiment.layout;
  layout.pp = value.pp;
  layout.num_virtual = value.num_virtual;
  layout.schedule = value.schedule;
  layout.stage_layers = value.stage_layers;
  layout.dp = value.dp;
  layout.shard = value.shard;
  layout.zero = value.zero;
  layout.recompute = value.recompute;
  layout.stage_recompute = value.stage_recompute;
  layout.micro_batch = value.micro_batch;
  layout.num_micro_batches = value.num_micro_batches;
  return experiment;
}

// What stages compute again, by stage.
Case with_stage_recompute(Case value, std::vector<Recompute> stage_recompute) {
  value.stage_recompute = std::move(stage_recompute);
  return value;
}

const std::vector<Case> kCases = {
    {"gpipe_pp2", "gpipe", 2, 1, 4},
    {"1f1b_pp2", "1f1b", 2, 1, 4},
    {"1f1b_pp4", "1f1b", 4, 1, 8},
    {"1f1b_pp3_few", "1f1b", 3, 1, 2},
    {"1f1b_pp2_uneven", "1f1b", 2, 1, 4, 1, 1, 1, Recompute::kNone, false, nullptr, {6, 2}},
    with_stage_recompute(
        {"1f1b_pp4_unlike_stages",
         "1f1b",
         4,
         1,
         8,
         1,
         1,
         1,
         Recompute::kNone,
         true,
         nullptr,
         {1, 4, 2, 1}},
        {Recompute::kFull, Recompute::kSelective, Recompute::kNone, Recompute::kNone}),
    with_stage_recompute(
        {"zb_v_pp2_unlike_stages", "zb_v", 2, 2, 4, 1, 2, 3},
        {Recompute::kFull, Recompute::kNone, Recompute::kSelective, Recompute::kNone}),
    {"1f1b_pp2_of_two_rows", "1f1b", 2, 1, 2, 1, 1, 1, Recompute::kNone, false, nullptr, {}, 2},
    {"gpipe_pp4_tied", "gpipe", 4, 1, 4, 1, 1, 1, Recompute::kNone, true},
    {"1f1b_dp2", "1f1b", 2, 1, 4, 2},
    {"1f1b_zero1_tied", "1f1b", 2, 1, 4, 1, 2, 1, Recompute::kNone, true},
    {"1f1b_zero2_recompute", "1f1b", 2, 1, 4, 1, 2, 2, Recompute::kFull},
    {"1f1b_zero3", "1f1b", 2, 1, 4, 1, 2, 3},
    {"1f1b_hsdp_zero2_tied", "1f1b", 2, 1, 3, 2, 2, 2, Recompute::kSelective, true},
    {"interleaved_pp2", "interleaved_1f1b", 2, 2, 4},
    {"interleaved_pp2_uneven_count", "interleaved_1f1b", 2, 3, 5},
    {"interleaved_pp4_tied", "interleaved_1f1b", 4, 2, 8, 1, 1, 1, Recompute::kNone, true},
    {"interleaved_zero3_recompute", "interleaved_1f1b", 2, 2, 4, 1, 2, 3, Recompute::kFull},
    {"breadth_first_pp4", "breadth_first", 4, 2, 4},
    {"breadth_first_zero3", "breadth_first", 2, 4, 3, 1, 2, 3},
    {"breadth_first_one_rank", "breadth_first", 1, 4, 3},
    {"zb_h1_pp2", "zb_h1", 2, 1, 4},
    {"zb_h1_pp4_tied", "zb_h1", 4, 1, 8, 1, 1, 1, Recompute::kNone, true},
    {"zb_h1_zero1_recompute", "zb_h1", 2, 1, 4, 1, 2, 1, Recompute::kFull},
    {"zb_h1_zero2", "zb_h1", 2, 1, 4, 1, 2, 2},
    {"zb_h1_zero3_tied", "zb_h1", 2, 1, 4, 1, 2, 3, Recompute::kSelective, true},
    {"zb_v_pp2", "zb_v", 2, 2, 4},
    {"zb_v_pp4_tied", "zb_v", 4, 2, 8, 1, 1, 1, Recompute::kNone, true},
    {"zb_v_zero2_tied", "zb_v", 2, 2, 4, 1, 2, 2, Recompute::kNone, true},
    {"zb_v_hsdp_zero3", "zb_v", 2, 2, 4, 2, 2, 3},
    {"v_half_pp4", "v_half", 4, 2, 8},
    {"v_half_zero3_recompute", "v_half", 2, 2, 4, 1, 2, 3, Recompute::kFull},
    {"dualpipe_v_pp2", "dualpipe_v", 2, 2, 6},
    {"dualpipe_v_pp4_tied", "dualpipe_v", 4, 2, 8, 1, 1, 1, Recompute::kNone, true},
    {"dualpipe_v_zero2", "dualpipe_v", 2, 2, 4, 1, 2, 2},
    {"1f1b_2bp", "1f1b_2bp", 2, 1, 4},
    {"by_hand", "", 2, 3, 2},
    {"by_hand_zero3_tied", "", 2, 3, 2, 1, 2, 3, Recompute::kNone, true},
    {"1f1b_gpt2", "1f1b", 2, 1, 4, 1, 2, 2, Recompute::kNone, false, "gpt2"},
    {"zb_h1_gpt2", "zb_h1", 2, 1, 4, 1, 1, 1, Recompute::kNone, false, "gpt2"},
    {"zb_h1_gemma2", "zb_h1", 2, 1, 4, 1, 1, 1, Recompute::kSelective, false, "gemma2"},
    {"zb_v_qwen3", "zb_v", 2, 2, 4, 1, 1, 1, Recompute::kNone, false, "qwen3"},
};

class Pipelines : public testing::TestWithParam<Case> {
 protected:
  static Experiment experiment_in(DType dtype) {
    Experiment experiment = experiment_of(GetParam(), dtype);
    if (experiment.layout.schedule.empty()) experiment.layout.schedule_csv = kByHand;
    return experiment;
  }
};

TEST_P(Pipelines, EqualOneProcessInFloat64) {
  expect_one_process_in_float64(experiment_in(DType::kFloat64));
}

TEST_P(Pipelines, EqualOneProcessInFloat32) {
  expect_one_process_in_float32(experiment_in(DType::kFloat32));
}

TEST_P(Pipelines, HoldWhatIsPredicted) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    Experiment experiment = experiment_in(dtype);
    experiment.rows = RowKind::kWholeDocument;
    experiment.num_steps = 2;
    expect_predicted_bytes(experiment, train(experiment), kPredictedInPipelines);
  }
}

// Ranks that now and then come late change neither a bit nor a byte.
TEST_P(Pipelines, DoNotDependOnTiming) {
  Experiment experiment = experiment_in(DType::kFloat32);
  experiment.num_steps = 2;
  const auto run = train(experiment);
  experiment.sleeps = true;
  const auto late = train(experiment);
  EXPECT_EQ(late.losses, run.losses);
  EXPECT_EQ(late.grad_norms, run.grad_norms);
  EXPECT_EQ(late.final_parameters, run.final_parameters);
  EXPECT_EQ(late.peak_bytes, run.peak_bytes);
}

INSTANTIATE_TEST_SUITE_P(All, Pipelines, testing::ValuesIn(kCases),
                         [](const auto& named) { return std::string(named.param.name); });

// What a rank stashes and what a call takes beside that, for eight schedules.
class EightSchedules : public testing::TestWithParam<Case> {};

TEST_P(EightSchedules, StashesAreSimulatedToTheByteAndTemporariesWithinTwoPercent) {
  Experiment experiment = experiment_of(GetParam(), DType::kFloat32);
  experiment.rows = RowKind::kWholeDocument;
  experiment.num_steps = 2;
  const auto run = train(experiment);
  constexpr auto kStash = static_cast<std::size_t>(MemoryClass::kStash);
  constexpr auto kTemporary = static_cast<std::size_t>(MemoryClass::kTemporary);
  for (std::size_t rank = 0; rank < run.peak_bytes.size(); ++rank) {
    const auto& measured = run.peak_bytes[rank];
    const auto& simulated = run.predicted_bytes[rank];
    EXPECT_GT(measured[kStash].value, 0);
    EXPECT_EQ(measured[kStash].value, simulated[kStash].value) << "of rank " << rank;
    EXPECT_NEAR(static_cast<double>(measured[kTemporary].value),
                static_cast<double>(simulated[kTemporary].value),
                0.02 * static_cast<double>(measured[kTemporary].value))
        << "of rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(
    On4Ranks, EightSchedules,
    testing::Values(Case{"gpipe", "gpipe", 4, 1, 8}, Case{"one_f_one_b", "1f1b", 4, 1, 8},
                    Case{"interleaved_1f1b", "interleaved_1f1b", 4, 2, 8},
                    Case{"breadth_first", "breadth_first", 4, 2, 8},
                    Case{"zb_h1", "zb_h1", 4, 1, 8}, Case{"zb_v", "zb_v", 4, 2, 8},
                    Case{"v_half", "v_half", 4, 2, 8}, Case{"dualpipe_v", "dualpipe_v", 4, 2, 8}),
    [](const auto& named) { return std::string(named.param.name); });

// Of the model's eight layers.
test::RandomSchedule random_sizes(std::mt19937& random) {
  const int num_ranks = 2 + static_cast<int>(random() % 7);
  return {.num_ranks = num_ranks,
          .num_virtual = num_ranks > 4 ? 1 : 1 + static_cast<int>(random() % 2),
          .num_micro_batches = 1 + static_cast<int>(random() % 5)};
}

// Any order that up to eight ranks can run gives the same, and none hangs.
TEST(RandomPipelines, EqualOneProcess) {
  std::mt19937 random(11);
  for (int i = 0; i < 100; ++i) {
    const test::RandomSchedule sizes = random_sizes(random);
    Case value{"random", "", sizes.num_ranks, sizes.num_virtual, sizes.num_micro_batches};
    value.tied = random() % 2 == 0;
    value.shard = sizes.num_ranks > 4 ? 1 : 1 + static_cast<int>(random() % 2);
    value.zero = 1 + static_cast<int>(random() % 3);
    Experiment experiment = experiment_of(value, DType::kFloat64);
    experiment.layout.schedule_csv = schedule::to_csv(test::random_legal(sizes, random));
    experiment.num_steps = 2;
    experiment.sequence = 6;
    const auto run = train(experiment);
    expect_losses_and_norms(run, train(on_one_rank(experiment)), 1e-9);
    ASSERT_FALSE(testing::Test::HasFailure()) << experiment.layout.schedule_csv;
  }
}

}  // namespace
}  // namespace ptrain::parity
