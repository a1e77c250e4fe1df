#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "engine/layers/router_part.h"
#include "tests/support/expert_kernels.h"
#include "tests/support/small_model.h"

namespace ptrain {
namespace {

constexpr std::int64_t kSequence = 8, kHidden = 16;

// Two rows: two documents and padding in the first, one document in the second.
data::MicroBatch two_rows() {
  data::MicroBatch batch;
  batch.rows = 2;
  batch.sequence = kSequence;
  batch.documents = {{0, 3}, {3, 6}, {6, 8}, {8, 16}};
  batch.tokens.assign(16, 1);
  batch.targets = {1, 1, -1, 1, 1, -1, -1, -1, 1, 1, 1, 1, 1, 1, 1, -1};
  batch.positions.assign(16, 0);
  return batch;
}
constexpr int kRow[] = {0, 0, 0, 0, 0, 0, -1, -1, 1, 1, 1, 1, 1, 1, 1, 1};
constexpr double kTokens[] = {6, 8}, kTargets[] = {4, 7};

using Matrix = std::vector<double>;

Matrix random_values(std::size_t size, int seed) {
  std::mt19937 generator(static_cast<unsigned>(seed));
  std::normal_distribution<double> normal;
  Matrix values(size);
  for (double& value : values) value = normal(generator);
  return values;
}

// One layer's router with weights and inputs of its own, and the same in plain formulas.
struct Router {
  explicit Router(const char* family, double balance, double z) {
    recipe::Model model = support::small_model(family);
    model.router_aux_loss_coef = balance;
    model.router_z_loss_coef = z;
    architecture = model::make_architecture(model, DType::kFloat64).value();
    spec = architecture.layers[2];
    experts = architecture.decoder.moe.num_experts;
    top_k = architecture.decoder.moe.top_k;
    weight = random_values(static_cast<std::size_t>(experts * kHidden), 1);
    normed = random_values(16 * kHidden, 2);
    bias = random_values(static_cast<std::size_t>(experts), 3);
    for (double& value : bias) value *= 0.1;
  }

  bool sigmoid() const { return architecture.decoder.moe.score == model::RouterScore::kSigmoid; }

  Matrix logits() const {
    Matrix result(static_cast<std::size_t>(16 * experts), 0);
    for (std::int64_t t = 0; t < 16; ++t)
      for (std::int64_t e = 0; e < experts; ++e)
        for (std::int64_t h = 0; h < kHidden; ++h)
          result[static_cast<std::size_t>(t * experts + e)] +=
              normed[static_cast<std::size_t>(t * kHidden + h)] *
              weight[static_cast<std::size_t>(e * kHidden + h)];
    return result;
  }

  // Probabilities of a token, and the log of the sum of e^logit.
  double probabilities(const double* logit, Matrix& p) const {
    double sum = 0, total = 0;
    for (std::int64_t e = 0; e < experts; ++e) sum += std::exp(logit[e]);
    p.assign(static_cast<std::size_t>(experts), 0);
    for (std::size_t e = 0; e < p.size(); ++e) {
      p[e] = sigmoid() ? 1 / (1 + std::exp(-logit[e])) : std::exp(logit[e]) / sum;
      total += p[e];
    }
    for (double& value : p) value /= total;
    return std::log(sum);
  }

  struct Losses {
    double balance = 0, z = 0, entropy = 0;
  };
  // By the choices that the engine made.
  Losses plain() const {
    const Matrix all = logits();
    Matrix probability_sums(static_cast<std::size_t>(2 * experts), 0), counts = probability_sums, p;
    Losses losses;
    for (std::int64_t t = 0; t < 16; ++t) {
      const int row = kRow[t];
      if (row < 0) continue;
      const double log_sum_exp = probabilities(all.data() + t * experts, p);
      losses.z += kTargets[row] * log_sum_exp * log_sum_exp / kTokens[row];
      for (std::int64_t e = 0; e < experts; ++e) {
        probability_sums[static_cast<std::size_t>(row * experts + e)] +=
            p[static_cast<std::size_t>(e)];
        losses.entropy -= p[static_cast<std::size_t>(e)] * std::log(p[static_cast<std::size_t>(e)]);
      }
      for (std::int64_t j = 0; j < top_k; ++j)
        ++counts[static_cast<std::size_t>(row * experts +
                                          chosen[static_cast<std::size_t>(t * top_k + j)])];
    }
    for (std::int64_t row = 0; row < 2; ++row)
      for (std::int64_t e = 0; e < experts; ++e) {
        const auto place = static_cast<std::size_t>(row * experts + e);
        const double share = counts[place] / (static_cast<double>(top_k) * kTokens[row]);
        losses.balance += kTargets[row] * static_cast<double>(experts) * share *
                          probability_sums[place] / kTokens[row];
      }
    return losses;
  }

  // The engine's: choice, sums, and the gradients of the auxiliary losses alone.
  void run(layers::RouterSums& sums) {
    const layers::RouterPart part(architecture, spec);
    std::vector<Tensor> parameters(spec.parameters.size());
    std::vector<layers::GradientTarget> targets(spec.parameters.size());
    const layers::Places places(architecture, spec);
    dweight.assign(weight.size(), std::nan(""));
    dbias.assign(bias.size(), std::nan(""));
    const auto tensor = [](Matrix& values, std::int64_t rows) {
      return contiguous(values.data(), DType::kFloat64, rows, std::ssize(values) / rows);
    };
    parameters[places.parameter(model::Role::kRouter)] = tensor(weight, experts);
    targets[places.parameter(model::Role::kRouter)] = {tensor(dweight, experts), false};
    if (architecture.decoder.moe.has_bias) {
      parameters[places.parameter(model::Role::kRouterBias)] = tensor(bias, 1);
      targets[places.parameter(model::Role::kRouterBias)] = {tensor(dbias, 1), false};
    }
    const data::MicroBatch batch = two_rows();
    Arena arena;
    const layers::Context context{batch, arena, parameters, {}};
    Matrix kept_logits(static_cast<std::size_t>(16 * experts)),
        weights(static_cast<std::size_t>(16 * top_k)), dweights(weights.size(), 0);
    chosen.assign(weights.size(), -1);
    const layers::RouterPart::Kept kept{tensor(kept_logits, 16),
                                        contiguous(chosen.data(), DType::kInt32, 16, top_k),
                                        tensor(weights, 16)};
    part.choose(context, tensor(normed, 16), kept);
    part.add_sums(context, kept, sums);
    dnormed.assign(normed.size(), 0);
    part.backward(context, targets, kept, {tensor(dweights, 16), tensor(normed, 16)},
                  tensor(dnormed, 16));
  }

  model::Architecture architecture;
  model::LayerSpec spec;
  std::int64_t experts = 0, top_k = 0;
  Matrix weight, normed, bias, dweight, dbias, dnormed;
  std::vector<std::int32_t> chosen;
};

using RouterLosses = test::WithExpertKernels<testing::TestWithParam<const char*>>;
using RouterValues = test::WithExpertKernels<testing::Test>;

TEST_P(RouterLosses, AreThePlainFormulasOfEveryRow) {
  Router router(GetParam(), 0.3, 0.02);
  layers::RouterSums sums;
  router.run(sums);
  const Router::Losses plain = router.plain();
  EXPECT_NEAR(sums.balance_loss, plain.balance, 1e-12 * plain.balance);
  EXPECT_NEAR(sums.z_loss, plain.z, 1e-12 * plain.z);
  EXPECT_NEAR(sums.entropy, plain.entropy, 1e-12 * plain.entropy);
  EXPECT_EQ(sums.num_tokens, 14);
  EXPECT_EQ(sums.num_dropped, 0);
  EXPECT_EQ(std::accumulate(sums.loads.begin(), sums.loads.end(), 0.0),
            14.0 * static_cast<double>(router.top_k));
}

// Central differences of the plain formulas, choices as they are.
TEST_P(RouterLosses, GradientsAreThoseOfThePlainFormulas) {
  Router router(GetParam(), 0.3, 0.02);
  layers::RouterSums sums;
  router.run(sums);
  const auto total = [&] {
    const Router::Losses losses = router.plain();
    return 0.3 * losses.balance + 0.02 * losses.z;
  };
  const auto expect_gradient = [&](Matrix& values, const Matrix& gradient) {
    for (std::size_t i = 0; i < values.size(); i += 3) {
      constexpr double kStep = 1e-5;
      const double middle = values[i];
      values[i] = middle + kStep;
      const double above = total();
      values[i] = middle - kStep;
      const double below = total();
      values[i] = middle;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-8) << i;
    }
  };
  expect_gradient(router.weight, router.dweight);
  expect_gradient(router.normed, router.dnormed);
}

TEST_P(RouterLosses, AreLeftOutWithoutCoefficients) {
  Router router(GetParam(), 0, 0);
  layers::RouterSums sums;
  router.run(sums);
  for (const double value : router.dweight) EXPECT_EQ(value, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, RouterLosses,
                         testing::Values("qwen3_moe", "deepseek_v2", "deepseek_v3"));

// Loads that are the same give a balance loss of 1 a target.
TEST_F(RouterValues, EvenLoadsAreWorthOne) {
  Router router("qwen3_moe", 1, 0);
  std::ranges::fill(router.weight, 0);
  layers::RouterSums sums;
  router.run(sums);
  EXPECT_NEAR(sums.balance_loss, 4 + 7, 1e-12);
}

TEST_F(RouterValues, BiasGetsTheExcessOfLoadsAsItsGradient) {
  Router router("deepseek_v3", 0, 0);
  layers::RouterSums sums;
  router.run(sums);
  for (std::int64_t e = 0; e < router.experts; ++e) {
    double load = 0;
    for (std::size_t slot = 0; slot < router.chosen.size(); ++slot)
      load += kRow[slot / static_cast<std::size_t>(router.top_k)] >= 0 && router.chosen[slot] == e;
    EXPECT_EQ(
        router.dbias[static_cast<std::size_t>(e)],
        static_cast<double>(router.experts) * load - 14.0 * static_cast<double>(router.top_k));
  }
}

}  // namespace
}  // namespace ptrain
