// Validation and sampling do not depend on the layout.

#include "engine/train/evaluation.h"

#include <gtest/gtest.h>

#include "engine/data/loader.h"
#include "tests/support/memory_index.h"
#include "tests/support/ranks.h"
#include "tests/support/small_model.h"

namespace ptrain::parity {
namespace {

constexpr std::int64_t kSequence = 12, kRows = 7;  // no multiple of any layout's rows

// Documents of 2 to 30 bytes: padded rows and cut documents.
std::shared_ptr<const data::Index> text() {
  data::MemoryIndex::Documents documents;
  for (int d = 0; d < 24; ++d) {
    std::vector<std::uint16_t> tokens;
    for (int t = 0; t < 2 + d * 7 % 29; ++t)
      tokens.push_back(static_cast<std::uint16_t>((d * 37 + t * 11) % 256));
    tokens.push_back(data::kByteEos);
    documents.push_back(std::move(tokens));
  }
  return data::memory_index(std::move(documents));
}

run::Plan plan_of(const mesh::Layout& layout) {
  run::Plan plan;
  recipe::Recipe& recipe = plan.recipe;
  recipe.seed = 3;
  recipe.precision = recipe::Precision::kFloat64;
  recipe.model.hidden_size = 16;
  recipe.model.intermediate_size = 24;
  recipe.model.num_hidden_layers = 2;
  recipe.model.num_attention_heads = 2;
  recipe.model.vocab_size = 320;
  recipe.model.initializer_range = 0.5;              // far from a uniform guess
  recipe.validation.tokens = kRows * kSequence - 5;  // rounded up to whole rows
  recipe.shapes.resize(1);
  recipe.shapes[0].name = "only";
  recipe.shapes[0].sequence = kSequence;
  plan.shapes.resize(1);
  plan.shapes[0].name = "only";
  plan.shapes[0].layout = layout;
  return plan;
}

struct Result {
  train::ValidationResult validation, again;
  std::string sample;
  program::BytesByClass peaks_before{}, peaks_after{};
};

// Experts that have no room for all tokens.
run::Plan plan_with_experts(const mesh::Layout& layout) {
  run::Plan plan = plan_of(layout);
  plan.recipe.model = support::small_model("mixtral");
  plan.recipe.model.vocab_size = 320;
  plan.recipe.model.initializer_range = 0.5;
  plan.recipe.model.expert_capacity_factor = 0.6;
  return plan;
}

program::BytesByClass peaks_of(const Arena& arena) {
  program::BytesByClass peaks{};
  for (std::size_t i = 0; i < peaks.size(); ++i)
    peaks[i] = arena.peak(static_cast<program::MemoryClass>(i));
  return peaks;
}

// One a rank.
std::vector<Result> evaluate(const run::Plan& plan) {
  const mesh::Layout& layout = plan.shapes[0].layout;
  std::vector<Result> results(static_cast<std::size_t>(layout.num_ranks()));
  tests::run_ranks(layout.num_ranks(), [&](comm::Communicator& world) {
    train::ShapeRun shape(plan, 0, world, {});
    shape.initialise(plan.recipe.seed);
    Result& result = results[static_cast<std::size_t>(world.rank())];
    result.peaks_before = peaks_of(shape.arena());
    result.validation = train::validate(shape, text(), plan.recipe);
    result.sample = train::sample(shape, *data::open_tokenizer({}, ""), 40, 9);
    result.again = train::validate(shape, text(), plan.recipe);
    result.peaks_after = peaks_of(shape.arena());
    shape.close();
  });
  return results;
}

mesh::Layout layout(int dp, int shard, int zero, std::int64_t micro_batch) {
  mesh::Layout value;
  value.dp = dp;
  value.shard = shard;
  value.zero = zero;
  value.micro_batch = micro_batch;
  return value;
}

// Targets of the first seven rows.
std::int64_t targets_of_rows() {
  data::Loader::Options options;
  options.seed = 3;
  options.sequence = kSequence;
  options.repeat = false;
  data::Loader loader(text(), options);
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < kRows; ++row)
    count += loader.next(0, 1, 1, 1).micro_batches.front().num_targets();
  return count;
}

mesh::Layout shared(int tp, int dp, std::int64_t micro_batch) {
  mesh::Layout value = layout(dp, 1, 1, micro_batch);
  value.tp = tp;
  return value;
}

mesh::Layout with_context(mesh::Layout value, int ring, int ulysses) {
  value.cp = ring * ulysses;
  value.ulysses = ulysses;
  return value;
}

mesh::Layout pipeline(mesh::Layout value, int pp, int num_virtual, const char* schedule) {
  value.pp = pp;
  value.num_virtual = num_virtual;
  value.schedule = schedule;
  value.num_micro_batches = 2 * pp;  // of a step; validation takes one at a time
  return value;
}

mesh::Layout spread(mesh::Layout value) {
  value.spread_head = true;
  return value;
}

mesh::Layout spread_both(mesh::Layout value) {
  value.spread_embedding = true;
  return spread(std::move(value));
}

void expect_same(const std::vector<Result>& results, const Result& one, const mesh::Layout& of) {
  for (const Result& result : results) {
    EXPECT_NEAR(result.validation.loss, one.validation.loss, 1e-12 * one.validation.loss);
    EXPECT_EQ(result.validation.num_targets, one.validation.num_targets);
    EXPECT_EQ(result.again.loss, result.validation.loss) << "sampling leaves nothing behind";
    EXPECT_EQ(result.sample, one.sample) << mesh::to_string(of);
    EXPECT_EQ(result.peaks_after, result.peaks_before)
        << "peaks are those of training: " << mesh::to_string(of);
  }
}

TEST(Evaluation, IsTheSameOnAnyLayout) {
  const Result one = evaluate(plan_of(layout(1, 1, 1, 1))).front();
  EXPECT_EQ(one.validation.num_targets, targets_of_rows());
  EXPECT_GT(one.sample.size(), 0u);
  EXPECT_LE(one.sample.size(), 40u);
  for (const auto& each :
       {layout(1, 1, 1, 4), layout(2, 1, 1, 1), layout(1, 2, 3, 3), layout(1, 3, 3, 1),
        layout(3, 1, 1, 2), layout(2, 2, 2, 1), shared(2, 1, 2), shared(2, 2, 1),
        with_context(layout(1, 1, 1, 2), 2, 1), with_context(layout(2, 1, 3, 1), 1, 2),
        with_context(layout(1, 1, 1, 1), 2, 2), with_context(shared(2, 1, 1), 3, 1),
        pipeline(layout(1, 1, 1, 2), 2, 1, "1f1b"), pipeline(layout(1, 2, 3, 1), 2, 2, "zb_v"),
        pipeline(shared(2, 1, 1), 2, 1, "zb_h1"),
        spread(pipeline(layout(1, 2, 3, 1), 2, 2, "zb_v")),
        spread(pipeline(shared(2, 1, 1), 3, 1, "1f1b")),
        spread_both(pipeline(layout(1, 2, 3, 1), 2, 1, "zb_h1")),
        spread_both(pipeline(shared(2, 1, 1), 2, 1, "1f1b"))})
    expect_same(evaluate(plan_of(each)), one, each);
}

// Which tokens experts have no room for is that of whole rows.
TEST(Evaluation, OfExpertsIsTheSameWhereRanksShareRows) {
  const Result one = evaluate(plan_with_experts(layout(1, 1, 1, 1))).front();
  auto dropless = plan_with_experts(layout(1, 1, 1, 1));
  dropless.recipe.model.expert_capacity_factor = 0;
  EXPECT_NE(evaluate(dropless).front().validation.loss, one.validation.loss);
  for (const auto& each : {shared(2, 1, 2), with_context(layout(2, 1, 1, 1), 2, 1),
                           with_context(shared(2, 1, 1), 1, 2)})
    expect_same(evaluate(plan_with_experts(each)), one, each);
}

TEST(Evaluation, StopsAtTheEndOfTheText) {
  run::Plan plan = plan_of(layout(1, 2, 3, 2));
  plan.recipe.validation.tokens = 1'000'000;
  std::int64_t total = 0;
  const auto index = text();
  for (std::int64_t d = 0; d < index->num_documents(); ++d)
    total += std::ssize(index->document(d)) - 1;
  tests::run_ranks(2, [&](comm::Communicator& world) {
    train::ShapeRun shape(plan, 0, world, {});
    shape.initialise(1);
    EXPECT_EQ(train::validate(shape, index, plan.recipe).num_targets, total);
    shape.close();
  });
}

}  // namespace
}  // namespace ptrain::parity
