#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "tests/support/fixture_reader.h"
#include "tests/support/layer_model.h"

namespace ptrain {
namespace {

using test::Keep;
using test::LayerModel;
using test::WeightTime;

// What transformers' LlamaForCausalLM gave in fp64 (tests/fixtures/layers/make_llama.py).
struct Fixture {
  data::MicroBatch batch;
  double loss = 0;
  std::map<std::string, std::vector<double>> weights, gradients;
  std::vector<double> logits;
};

Fixture read_fixture(bool tied) {
  test::FixtureReader file(tied ? "layers/llama_tied.bin" : "layers/llama_free.bin");
  Fixture fixture;
  std::vector<std::pair<std::string, std::int64_t>> names(static_cast<std::size_t>(file.integer()));
  for (auto& [name, size] : names) {
    name = file.text(file.integer());
    size = file.integer();
  }
  const std::int64_t num_tokens = file.integer(), num_documents = file.integer();
  fixture.batch.rows = 2;
  fixture.batch.sequence = num_tokens / 2;
  std::int64_t begin = 0;
  for (const std::int64_t end : file.integers(num_documents)) {
    fixture.batch.documents.push_back({begin, end});
    for (std::int64_t t = begin; t < end; ++t)
      fixture.batch.positions.push_back(static_cast<std::int32_t>(t - begin));
    begin = end;
  }
  for (const auto token : file.integers(num_tokens))
    fixture.batch.tokens.push_back(static_cast<std::int32_t>(token));
  for (const auto target : file.integers(num_tokens))
    fixture.batch.targets.push_back(static_cast<std::int32_t>(target));
  fixture.loss = file.doubles(1)[0];
  for (auto& [name, size] : names) fixture.weights[name] = file.doubles(size);
  for (auto& [name, size] : names) fixture.gradients[name] = file.doubles(size);
  fixture.logits = file.doubles(num_tokens * 53);
  return fixture;
}

model::Architecture architecture(bool tied, DType dtype) {
  recipe::Model config;
  config.hidden_size = 16;
  config.intermediate_size = 24;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 6;
  config.vocab_size = 53;
  config.rms_norm_eps = 1e-5;
  config.tie_word_embeddings = tied;
  return *model::llama(config, dtype);
}

LayerModel model_of(const Fixture& fixture, bool tied, DType dtype, std::int64_t gap = 0) {
  LayerModel model(architecture(tied, dtype), gap);
  for (std::size_t i = 0; i < model.num_parameters(); ++i) {
    const auto& values = fixture.weights.at(model.architecture().parameters[i].name);
    dispatch(dtype, [&]<class T>(T) {
      for (std::size_t e = 0; e < values.size(); ++e)
        model.parameter(i).as<T>()[e] = static_cast<T>(values[e]);
    });
  }
  return model;
}

// |gradient - factor * wanted| / |factor * wanted|, as vectors.
double relative_error(const Tensor& gradient, const std::vector<double>& wanted, double factor) {
  double difference = 0, norm = 0;
  dispatch(gradient.dtype, [&]<class T>(T) {
    for (std::size_t e = 0; e < wanted.size(); ++e) {
      difference += std::pow(static_cast<double>(gradient.as<T>()[e]) - factor * wanted[e], 2);
      norm += std::pow(factor * wanted[e], 2);
    }
  });
  return std::sqrt(difference / norm);
}

void expect_gradients(const LayerModel& model, const Fixture& fixture, double bound,
                      double factor = 1) {
  for (std::size_t i = 0; i < model.num_parameters(); ++i) {
    const std::string& name = model.architecture().parameters[i].name;
    EXPECT_LT(relative_error(model.gradient(i), fixture.gradients.at(name), factor), bound) << name;
  }
}

void expect_same_gradients(const LayerModel& first, const LayerModel& second) {
  for (std::size_t i = 0; i < first.num_parameters(); ++i)
    EXPECT_EQ(std::memcmp(first.gradient(i).data, second.gradient(i).data,
                          static_cast<std::size_t>(first.gradient(i).num_elements() *
                                                   size_of(first.gradient(i).dtype))),
              0)
        << first.architecture().parameters[i].name;
}

struct Case {
  bool tied;
  DType dtype;
  double bound() const { return dtype == DType::kFloat64 ? 1e-9 : 1e-5; }
  double logits_bound() const { return dtype == DType::kFloat64 ? 1e-9 : 1e-6; }
};

class Llama : public testing::TestWithParam<Case> {};

TEST_P(Llama, LossAndGradientsAreThoseOfTransformers) {
  const Fixture fixture = read_fixture(GetParam().tied);
  LayerModel model = model_of(fixture, GetParam().tied, GetParam().dtype);
  const layers::LossSums sums = model.step(fixture.batch);
  EXPECT_EQ(sums.num_targets, 6 + 1 + 11 + 18);
  EXPECT_NEAR(sums.loss / fixture.loss, 1, GetParam().bound());
  EXPECT_NEAR(model.loss(fixture.batch).loss / fixture.loss, 1, GetParam().bound());
  expect_gradients(model, fixture, GetParam().bound());
}

TEST_P(Llama, LogitsAreThoseOfTransformers) {
  const Fixture fixture = read_fixture(GetParam().tied);
  auto logits = model_of(fixture, GetParam().tied, GetParam().dtype).logits(fixture.batch);
  ASSERT_EQ(logits.size(), fixture.logits.size());
  const Tensor found = contiguous(logits.data(), DType::kFloat64, 1, std::ssize(logits));
  EXPECT_LT(relative_error(found, fixture.logits, 1), GetParam().logits_bound());
}

TEST_P(Llama, WeightsThatDoNotTouchGiveTheSame) {
  const Fixture fixture = read_fixture(GetParam().tied);
  LayerModel model = model_of(fixture, GetParam().tied, GetParam().dtype, 3);
  EXPECT_NEAR(model.step(fixture.batch).loss / fixture.loss, 1, GetParam().bound());
  expect_gradients(model, fixture, GetParam().bound());
}

TEST_P(Llama, TwoMicroBatchesAddUp) {
  const Fixture fixture = read_fixture(GetParam().tied);
  LayerModel model = model_of(fixture, GetParam().tied, GetParam().dtype);
  model.step(fixture.batch);
  model.step(fixture.batch);
  expect_gradients(model, fixture, GetParam().bound(), 2);
}

TEST_P(Llama, RecomputationGivesTheSameBits) {
  const Fixture fixture = read_fixture(GetParam().tied);
  LayerModel kept = model_of(fixture, GetParam().tied, GetParam().dtype);
  LayerModel recomputed = model_of(fixture, GetParam().tied, GetParam().dtype);
  EXPECT_EQ(kept.step(fixture.batch).loss, recomputed.step(fixture.batch, Keep::kInput).loss);
  expect_same_gradients(kept, recomputed);
}

TEST_P(Llama, WeightGradientsMadeLateHaveTheSameBits) {
  const Fixture fixture = read_fixture(GetParam().tied);
  LayerModel at_once = model_of(fixture, GetParam().tied, GetParam().dtype);
  LayerModel late = model_of(fixture, GetParam().tied, GetParam().dtype);
  at_once.step(fixture.batch);
  late.step(fixture.batch, Keep::kAll, WeightTime::kAfterAllInputs);
  expect_same_gradients(at_once, late);
}

TEST_P(Llama, DocumentsDoNotSeeEachOther) {
  const Fixture fixture = read_fixture(GetParam().tied);
  LayerModel model = model_of(fixture, GetParam().tied, GetParam().dtype);
  const auto before = model.hidden(fixture.batch).back();
  data::MicroBatch changed = fixture.batch;
  const data::DocumentSpan span = changed.documents[2];
  for (std::int64_t t = span.begin; t < span.end; ++t) {
    auto& token = changed.tokens[static_cast<std::size_t>(t)];
    token = (token + 1) % 53;
  }
  const auto after = model.hidden(changed).back();
  const auto row = before.size() / static_cast<std::size_t>(changed.num_tokens());
  for (std::int64_t t = 0; t < changed.num_tokens(); ++t) {
    const auto offset = static_cast<std::size_t>(t) * row;
    const bool same = std::memcmp(before.data() + offset, after.data() + offset, row) == 0;
    EXPECT_EQ(same, t < span.begin || t >= span.end) << "token " << t;
  }
}

// What a call takes from the arena it gives back.
TEST_P(Llama, NothingStaysTaken) {
  const Fixture fixture = read_fixture(GetParam().tied);
  LayerModel model = model_of(fixture, GetParam().tied, GetParam().dtype);
  model.step(fixture.batch, Keep::kInput);
  model.loss(fixture.batch);
  EXPECT_EQ(model.arena().live(program::MemoryClass::kTemporary), Bytes{0});
}

INSTANTIATE_TEST_SUITE_P(All, Llama,
                         testing::Values(Case{false, DType::kFloat64}, Case{true, DType::kFloat64},
                                         Case{false, DType::kFloat32}, Case{true, DType::kFloat32}),
                         [](const auto& each) {
                           return std::string(each.param.tied ? "Tied" : "Free") +
                                  (each.param.dtype == DType::kFloat64 ? "Float64" : "Float32");
                         });

}  // namespace
}  // namespace ptrain
