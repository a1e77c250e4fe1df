#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/layer_model.h"
#include "tests/support/matrix.h"

namespace ptrain {
namespace {

constexpr std::int64_t kVocabulary = 37, kHidden = 12, kDocument = 100, kNumDocuments = 6;

model::Architecture architecture() {
  recipe::Model config;
  config.hidden_size = kHidden;
  config.intermediate_size = 20;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.vocab_size = kVocabulary;
  return *model::make_architecture(config, DType::kFloat64);
}

test::LayerModel random_model() {
  test::LayerModel model(architecture());
  std::mt19937 generator(1);
  std::normal_distribution<double> normal(0, 0.5);
  for (std::size_t i = 0; i < model.num_parameters(); ++i)
    for (std::int64_t e = 0; e < model.parameter(i).num_elements(); ++e)
      model.parameter(i).as<double>()[e] = normal(generator);
  return model;
}

// Documents [first, last) of a fixed text, one a row.
data::MicroBatch documents(std::int64_t first, std::int64_t last) {
  data::MicroBatch batch;
  batch.rows = last - first;
  batch.sequence = kDocument;
  for (std::int64_t t = first * kDocument; t < last * kDocument; ++t) {
    batch.tokens.push_back(static_cast<std::int32_t>(t * t % kVocabulary));
    batch.targets.push_back(t % 7 == 0 ? data::kNoTarget
                                       : static_cast<std::int32_t>(t * 5 % kVocabulary));
    batch.positions.push_back(static_cast<std::int32_t>(t % kDocument));
  }
  for (std::int64_t row = 0; row < batch.rows; ++row)
    batch.documents.push_back({row * kDocument, (row + 1) * kDocument});
  return batch;
}

// 600 tokens are three chunks of the head, the last a short one; 100 tokens are one.
TEST(Head, ChunksAndMicroBatchesAddUpToTheSame) {
  test::LayerModel whole = random_model(), parts = random_model();
  const layers::LossSums all = whole.step(documents(0, kNumDocuments));
  layers::LossSums sums;
  for (std::int64_t d = 0; d < kNumDocuments; ++d) {
    const layers::LossSums one = parts.step(documents(d, d + 1));
    sums.loss += one.loss;
    sums.num_targets += one.num_targets;
  }
  EXPECT_EQ(all.num_targets, sums.num_targets);
  EXPECT_NEAR(all.loss / sums.loss, 1, 1e-13);
  EXPECT_NEAR(whole.loss(documents(0, kNumDocuments)).loss / sums.loss, 1, 1e-13);
  for (std::size_t i = 0; i < whole.num_parameters(); ++i)
    for (std::int64_t e = 0; e < whole.gradient(i).num_elements(); ++e)
      ASSERT_NEAR(whole.gradient(i).as<double>()[e], parts.gradient(i).as<double>()[e], 1e-9)
          << whole.architecture().parameters[i].name;
}

// The loss is the cross-entropy of the logits that sampling sees.
TEST(Head, LogitsAreThoseOfTheLoss) {
  const auto code = layers::make_layers(architecture());
  Arena arena;
  const data::MicroBatch batch = documents(0, 1);
  auto x = test::Doubles::random(kDocument, kHidden, 1);
  auto norm = test::Doubles::random(1, kHidden, 2);
  auto matrix = test::Doubles::random(kVocabulary, kHidden, 3);
  const std::vector<Tensor> parameters{norm.view(), matrix.view()};
  layers::LossSums sums;
  layers::run_alone(code.back()->loss({batch, arena, parameters, {}}, x.view(), sums));

  test::Doubles logits(3, kVocabulary);
  layers::run_alone(
      code.back()->logits({batch, arena, parameters, {}}, x.view(), 1, logits.view()));
  test::Doubles all(kDocument, kVocabulary);
  layers::run_alone(code.back()->logits({batch, arena, parameters, {}}, x.view(), 0, all.view()));
  double loss = 0;
  for (std::int64_t t = 0; t < kDocument; ++t) {
    const std::int32_t target = batch.targets[static_cast<std::size_t>(t)];
    if (target == data::kNoTarget) continue;
    double sum = 0;
    for (std::int64_t v = 0; v < kVocabulary; ++v) sum += std::exp(all(t, v));
    loss += std::log(sum) - all(t, target);
  }
  EXPECT_NEAR(sums.loss / loss, 1, 1e-13);
  for (std::int64_t v = 0; v < kVocabulary; ++v) EXPECT_NEAR(logits(2, v), all(3, v), 1e-12);
}

TEST(Head, OtherLayersMakeNoLoss) {
  const auto code = layers::make_layers(architecture());
  Arena arena;
  layers::LossSums sums;
  EXPECT_ANY_THROW(code.front()->loss({documents(0, 1), arena, {}, {}}, {}, sums));
}

}  // namespace
}  // namespace ptrain
