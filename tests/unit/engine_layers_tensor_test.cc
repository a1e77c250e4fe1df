// Layers whose work the ranks of the tensor axis share give what one rank gives.

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <random>

#include "core/mesh/part.h"
#include "engine/base/engine_error.h"
#include "tests/support/expert_kernels.h"
#include "tests/support/layer_model.h"
#include "tests/support/ranks.h"
#include "tests/support/small_model.h"

namespace ptrain {
namespace {

using test::Keep;
using test::LayerModel;
using Values = std::vector<std::vector<double>>;  // by parameter of the whole

constexpr std::int64_t kVocabulary = 32, kTokens = 24;

model::Architecture whole_model(const std::string& family, DType dtype) {
  recipe::Model model = support::small_model(family);
  model.vocab_size = kVocabulary;
  return value_or_throw(model::make_architecture(model, dtype));
}

Values random_values(const model::Architecture& architecture) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(0, 0.3);
  Values values;
  for (const auto& parameter : architecture.parameters) {
    auto& elements = values.emplace_back(static_cast<std::size_t>(parameter.num_elements()));
    for (double& value : elements) value = normal(random);
  }
  return values;
}

// Two documents and some padding at the end of the second row.
data::MicroBatch random_batch() {
  std::mt19937 random(3);
  data::MicroBatch batch;
  batch.rows = 2;
  batch.sequence = kTokens / 2;
  batch.documents = {{0, 7}, {7, 12}, {12, 20}, {20, 24}};
  for (const auto& span : batch.documents)
    for (std::int64_t t = span.begin; t < span.end; ++t) {
      batch.positions.push_back(static_cast<std::int32_t>(t - span.begin));
      batch.tokens.push_back(static_cast<std::int32_t>(random() % kVocabulary));
      const bool is_target = t + 1 < span.end && span.begin < 20;
      batch.targets.push_back(is_target ? static_cast<std::int32_t>(random() % kVocabulary)
                                        : data::kNoTarget);
    }
  return batch;
}

// f(element of the part, element of the whole).
template <class F>
void each_element(const model::ParameterSpec& part, const F& f) {
  const bool is_whole = part.whole_shape.empty();
  const auto& shape = is_whole ? part.shape : part.whole_shape;
  const std::int64_t rows = part.shape.size() > 1 ? part.shape.front() : 1;
  const std::int64_t cols = part.shape.back();
  const std::int64_t first_col = is_whole ? 0 : part.offsets.back();
  const std::int64_t first_row = is_whole || part.shape.size() == 1 ? 0 : part.offsets.front();
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      f(static_cast<std::size_t>(r * cols + c),
        static_cast<std::size_t>((first_row + r) * shape.back() + first_col + c));
}

std::size_t index_in(const model::Architecture& whole, const std::string& name) {
  std::size_t index = 0;
  while (whole.parameters[index].name != name) ++index;
  return index;
}

void fill(LayerModel& model, const model::Architecture& whole, const Values& values) {
  for (std::size_t i = 0; i < model.num_parameters(); ++i) {
    const auto& spec = model.architecture().parameters[i];
    const auto& from = values[index_in(whole, spec.name)];
    dispatch(model.parameter(i).dtype, [&]<class T>(T) {
      each_element(spec, [&](std::size_t to, std::size_t element) {
        model.parameter(i).as<T>()[to] = static_cast<T>(from[element]);
      });
    });
  }
}

// Every copy's part of a gradient adds up, and so do the parts, which do not overlap.
void add_gradients(const LayerModel& model, const model::Architecture& whole, Values& sums) {
  for (std::size_t i = 0; i < model.num_parameters(); ++i) {
    const auto& spec = model.architecture().parameters[i];
    auto& sum = sums[index_in(whole, spec.name)];
    dispatch(model.gradient(i).dtype, [&]<class T>(T) {
      each_element(spec, [&](std::size_t from, std::size_t element) {
        sum[element] += static_cast<double>(model.gradient(i).as<T>()[from]);
      });
    });
  }
}

struct Outcome {
  double loss = 0, evaluated = 0;
  std::int64_t num_targets = 0;
  std::vector<double> logits;
  Values gradients;
};

Outcome run(const model::Architecture& whole, int num_ranks, Keep keep) {
  const Values values = random_values(whole);
  const data::MicroBatch batch = random_batch();
  mesh::Layout layout;
  layout.tp = num_ranks;
  Outcome outcome;
  outcome.gradients = values;
  for (auto& gradient : outcome.gradients) gradient.assign(gradient.size(), 0);
  std::mutex mutex;
  tests::run_ranks(num_ranks, [&](comm::Communicator& world) {
    LayerModel model(value_or_throw(mesh::part_of(whole, layout, world.rank())), 0, &world);
    fill(model, whole, values);
    const auto sums = model.step(batch, keep);
    const auto evaluated = model.loss(batch);
    const auto logits = model.logits(batch);
    const std::lock_guard lock(mutex);
    outcome.loss += sums.loss;
    outcome.evaluated += evaluated.loss;
    outcome.num_targets += sums.num_targets;
    add_gradients(model, whole, outcome.gradients);
    if (world.rank() == num_ranks - 1) outcome.logits = logits;
  });
  return outcome;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

struct Case {
  const char* family;
  int tp;
};

class Tensor : public testing::TestWithParam<std::tuple<Case, Keep>> {
 protected:
  void SetUp() override {
    if (support::has_experts(std::get<0>(GetParam()).family) && !test::has_expert_kernels())
      GTEST_SKIP() << "not on these kernels";
  }
  void expect_equal(DType dtype, double tolerance) const {
    const auto& [parameters, keep] = GetParam();
    const auto whole = whole_model(parameters.family, dtype);
    const Outcome truth = run(whole, 1, Keep::kAll), shared = run(whole, parameters.tp, keep);
    EXPECT_EQ(shared.num_targets, truth.num_targets);
    EXPECT_NEAR(shared.loss, truth.loss, tolerance * truth.loss);
    EXPECT_NEAR(shared.evaluated, truth.evaluated, tolerance * truth.evaluated);
    EXPECT_LT(distance(shared.logits, truth.logits), tolerance);
    for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
      const std::string& name = whole.parameters[i].name;
      // Of keys a bias changes no probability: its gradient is noise.
      if (name.ends_with("k_proj.bias")) continue;
      EXPECT_LT(distance(shared.gradients[i], truth.gradients[i]), tolerance) << name;
    }
  }
};

TEST_P(Tensor, EqualsOneRankInFloat64) { expect_equal(DType::kFloat64, 1e-9); }
TEST_P(Tensor, EqualsOneRankInFloat32) { expect_equal(DType::kFloat32, 1e-5); }
// Products are rounded apart and then added up: what bfloat16 can tell.
TEST_P(Tensor, EqualsOneRankInBFloat16) { expect_equal(DType::kBFloat16, 3e-2); }

TEST_P(Tensor, RepeatsTheSameBits) {
  const auto& [parameters, keep] = GetParam();
  const auto whole = whole_model(parameters.family, DType::kFloat32);
  const Outcome first = run(whole, parameters.tp, keep), again = run(whole, parameters.tp, keep);
  EXPECT_EQ(first.loss, again.loss);
  EXPECT_EQ(first.logits, again.logits);
  EXPECT_EQ(first.gradients, again.gradients);
}

INSTANTIATE_TEST_SUITE_P(
    All, Tensor,
    testing::Combine(testing::Values(Case{"llama", 2}, Case{"llama", 4}, Case{"mistral", 2},
                                     Case{"qwen2", 2}, Case{"qwen3", 4}, Case{"gpt2", 4},
                                     Case{"gemma2", 2}, Case{"gemma3", 4}, Case{"mixtral", 2},
                                     Case{"qwen3_moe", 4}, Case{"deepseek_v2", 2},
                                     Case{"deepseek_v3", 4}),
                     testing::Values(Keep::kAll, Keep::kInput, Keep::kSelected)),
    [](const auto& tested) {
      const Case& value = std::get<0>(tested.param);
      const Keep keep = std::get<1>(tested.param);
      return std::string(value.family) + "_tp" + std::to_string(value.tp) + "_" +
             std::string(program::to_string(keep));
    });

}  // namespace
}  // namespace ptrain
