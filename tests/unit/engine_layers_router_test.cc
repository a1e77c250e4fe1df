#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <random>

#include "engine/data/context_part.h"
#include "engine/layers/router_part.h"
#include "tests/support/expert_kernels.h"
#include "tests/support/ranks.h"
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

// How ranks share the rows: tp inside ulysses inside the ring.
struct Shares {
  int ring = 1, ulysses = 1, tp = 1;
  int num_ranks() const { return ring * ulysses * tp; }
};

void run_among(comm::Communicator& ranks, layers::Task task) {
  while (const layers::Exchange* exchange = task.resume()) exchange->start(ranks)->wait();
}

Tensor tensor_of(Matrix& values, std::int64_t rows) {
  return contiguous(values.data(), DType::kFloat64, rows, std::ssize(values) / rows);
}

struct Router;

// One rank's part of a router's work.
class RouterOfRank {
 public:
  RouterOfRank(const Router& router, const Shares& shares, const comm::Communicator& ranks);
  void run(comm::Communicator& ranks);
  // Gradients are sums over ranks; the rest is that of the own tokens.
  void add_to(Router& router, layers::RouterSums& sums) const;

 private:
  std::int64_t num_tokens() const { return std::ssize(tokens_); }

  model::Architecture architecture_;
  const model::LayerSpec& spec_;
  std::int64_t experts_, top_k_;
  data::MicroBatch batch_;
  std::vector<std::int64_t> tokens_;  // of the whole rows
  Matrix weight_, bias_, normed_, dweight_, dbias_, dnormed_;
  std::vector<std::int32_t> chosen_;
  layers::RouterSums sums_;
};

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

  void limit(double capacity_factor) { architecture.decoder.moe.capacity_factor = capacity_factor; }

  // By the choices that the engine made: each row's first tokens have room.
  std::vector<std::int32_t> with_room(double capacity_factor) const {
    std::vector<std::int32_t> result = chosen;
    std::map<std::pair<int, std::int32_t>, int> taken;
    for (std::size_t slot = 0; slot < result.size(); ++slot) {
      const int row = kRow[slot / static_cast<std::size_t>(top_k)];
      const std::int32_t expert = kernels::expert_of(result[slot]);
      if (row < 0) continue;
      const double mean = kTokens[row] * static_cast<double>(top_k) / static_cast<double>(experts);
      const bool has_room = ++taken[{row, expert}] <= std::ceil(capacity_factor * mean);
      result[slot] = has_room ? expert : ~expert;
    }
    return result;
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
        ++counts[static_cast<std::size_t>(
            row * experts + kernels::expert_of(chosen[static_cast<std::size_t>(t * top_k + j)]))];
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

  // The engine's: choice, sums, and the gradients of the auxiliary losses alone, by ranks that
  // share the rows.
  void run(layers::RouterSums& sums, const Shares& shares = {}) {
    dweight.assign(weight.size(), 0);
    dbias.assign(bias.size(), 0);
    dnormed.assign(normed.size(), 0);
    chosen.assign(static_cast<std::size_t>(16 * top_k), -1);
    std::mutex mutex;
    tests::run_ranks(shares.num_ranks(), [&](comm::Communicator& ranks) {
      RouterOfRank rank(*this, shares, ranks);
      rank.run(ranks);
      const std::lock_guard lock(mutex);
      rank.add_to(*this, sums);
    });
  }

  model::Architecture architecture;
  model::LayerSpec spec;
  std::int64_t experts = 0, top_k = 0;
  Matrix weight, normed, bias, dweight, dbias, dnormed;
  std::vector<std::int32_t> chosen;
};

model::Architecture part_of(const model::Architecture& whole, const Shares& shares, int rank) {
  model::Architecture part = whole;
  part.tensor = {shares.tp, rank % shares.tp};
  part.ulysses = {shares.ulysses, rank / shares.tp % shares.ulysses};
  part.ring = {shares.ring, rank / shares.tp / shares.ulysses};
  return part;
}

RouterOfRank::RouterOfRank(const Router& router, const Shares& shares,
                           const comm::Communicator& ranks)
    : architecture_(part_of(router.architecture, shares, ranks.rank())),
      spec_(architecture_.layers[2]),
      experts_(router.experts),
      top_k_(router.top_k),
      batch_(two_rows()),
      weight_(router.weight),
      bias_(router.bias) {
  const data::ContextRanks context{architecture_.ring, architecture_.ulysses};
  if (context.count() > 1) batch_ = data::context_part(batch_, context);
  for (const data::DocumentSpan& span : data::tokens_of_part(batch_, context))
    for (std::int64_t token = span.begin; token < span.end; ++token) tokens_.push_back(token);
  const std::int64_t own = architecture_.stream_rows(std::ssize(tokens_));
  tokens_ = {tokens_.begin() + architecture_.tensor.rank * own,
             tokens_.begin() + (architecture_.tensor.rank + 1) * own};
  for (const std::int64_t token : tokens_)
    normed_.insert(normed_.end(), router.normed.begin() + token * kHidden,
                   router.normed.begin() + (token + 1) * kHidden);
}

void RouterOfRank::run(comm::Communicator& ranks) {
  const layers::RouterPart part(architecture_, spec_);
  std::vector<Tensor> parameters(spec_.parameters.size());
  std::vector<layers::GradientTarget> targets(spec_.parameters.size());
  const layers::Places places(architecture_, spec_);
  dweight_.assign(weight_.size(), std::nan(""));
  dbias_.assign(bias_.size(), std::nan(""));
  parameters[places.parameter(model::Role::kRouter)] = tensor_of(weight_, experts_);
  targets[places.parameter(model::Role::kRouter)] = {tensor_of(dweight_, experts_), false};
  if (architecture_.decoder.moe.has_bias) {
    parameters[places.parameter(model::Role::kRouterBias)] = tensor_of(bias_, 1);
    targets[places.parameter(model::Role::kRouterBias)] = {tensor_of(dbias_, 1), false};
  }
  Arena arena;
  const layers::Context context{batch_, arena, parameters, {}};
  Matrix logits(static_cast<std::size_t>(num_tokens() * experts_)),
      weights(static_cast<std::size_t>(num_tokens() * top_k_)), dweights(weights.size(), 0);
  chosen_.assign(weights.size(), -1);
  const layers::RouterPart::Kept kept{
      tensor_of(logits, num_tokens()),
      contiguous(chosen_.data(), DType::kInt32, num_tokens(), top_k_),
      tensor_of(weights, num_tokens())};
  const Tensor normed = tensor_of(normed_, num_tokens());
  run_among(ranks, part.choose(context, normed, kept));
  dnormed_.assign(normed_.size(), 0);
  const layers::RouterPart::Gradient in{tensor_of(dweights, num_tokens()), normed, sums_};
  run_among(ranks, part.backward(context, targets, kept, in, tensor_of(dnormed_, num_tokens())));
}

void RouterOfRank::add_to(Router& router, layers::RouterSums& sums) const {
  for (std::size_t i = 0; i < dweight_.size(); ++i) router.dweight[i] += dweight_[i];
  for (std::size_t i = 0; i < dbias_.size(); ++i) router.dbias[i] += dbias_[i];
  for (std::size_t t = 0; t < tokens_.size(); ++t) {
    std::copy_n(dnormed_.begin() + static_cast<std::int64_t>(t) * kHidden, kHidden,
                router.dnormed.begin() + tokens_[t] * kHidden);
    std::copy_n(chosen_.begin() + static_cast<std::int64_t>(t) * top_k_, top_k_,
                router.chosen.begin() + tokens_[t] * top_k_);
  }
  sums.begin(std::ssize(sums_.loads) / experts_, experts_);
  sums.balance_loss += sums_.balance_loss;
  sums.z_loss += sums_.z_loss;
  sums.entropy += sums_.entropy;
  sums.num_tokens += sums_.num_tokens;
  sums.num_dropped += sums_.num_dropped;
  for (std::size_t i = 0; i < sums.loads.size(); ++i) sums.loads[i] += sums_.loads[i];
}

using RouterLosses =
    test::WithExpertKernels<testing::TestWithParam<std::tuple<const char*, Shares>>>;
using RouterValues = test::WithExpertKernels<testing::Test>;

TEST_P(RouterLosses, AreThePlainFormulasOfEveryRow) {
  const auto& [family, shares] = GetParam();
  Router router(family, 0.3, 0.02);
  layers::RouterSums sums;
  router.run(sums, shares);
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
  const auto& [family, shares] = GetParam();
  Router router(family, 0.3, 0.02);
  layers::RouterSums sums;
  router.run(sums, shares);
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
  const auto& [family, shares] = GetParam();
  Router router(family, 0, 0);
  layers::RouterSums sums;
  router.run(sums, shares);
  for (const double value : router.dweight) EXPECT_EQ(value, 0);
}

// Which tokens of a row an expert has no room for does not depend on who holds them.
TEST_P(RouterLosses, DropTheLastTokensOfARow) {
  const auto& [family, shares] = GetParam();
  Router router(family, 0.3, 0.02), alone(family, 0.3, 0.02);
  router.limit(0.8), alone.limit(0.8);
  layers::RouterSums sums, sums_of_one;
  router.run(sums, shares);
  alone.run(sums_of_one);
  EXPECT_EQ(router.chosen, alone.chosen);
  EXPECT_EQ(router.chosen, router.with_room(0.8));
  EXPECT_GT(sums.num_dropped, 0);
  EXPECT_EQ(sums.num_dropped, sums_of_one.num_dropped);
  EXPECT_EQ(sums.loads, sums_of_one.loads);
  if (router.architecture.decoder.moe.has_bias) {
    EXPECT_EQ(router.dbias, alone.dbias);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, RouterLosses,
    testing::Combine(testing::Values("qwen3_moe", "deepseek_v2", "deepseek_v3"),
                     testing::Values(Shares{}, Shares{1, 1, 2}, Shares{1, 1, 4}, Shares{2, 1, 1},
                                     Shares{1, 2, 1}, Shares{2, 2, 1}, Shares{2, 1, 2},
                                     Shares{2, 2, 2})),
    [](const auto& tested) {
      const Shares& shares = std::get<1>(tested.param);
      return std::string(std::get<0>(tested.param)) + "_ring" + std::to_string(shares.ring) +
             "_ulysses" + std::to_string(shares.ulysses) + "_tp" + std::to_string(shares.tp);
    });

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
