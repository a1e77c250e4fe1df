#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/optim/adamw.h"
#include "tests/support/fixture_reader.h"

namespace ptrain::optim {
namespace {

template <class T>
constexpr DType kDType = sizeof(T) == 8 ? DType::kFloat64 : DType::kFloat32;

template <class T>
Tensor view(std::vector<T>& values) {
  return contiguous(values.data(), kDType<T>, 1, static_cast<std::int64_t>(values.size()));
}

// 20 steps of torch.optim.AdamW in fp64 (tests/fixtures/layers/make_adamw.py): lr 0.01, betas 0.9
// and 0.95.
template <class T>
double worst_relative_error(double gradient_factor) {
  test::FixtureReader file("layers/adamw.bin");
  const std::int64_t size = file.integer(), steps = file.integer();
  const auto first = file.doubles(size);
  std::vector<T> parameter(first.begin(), first.end()), m(first.size()), v(first.size());
  for (std::int64_t step = 1; step <= steps; ++step) {
    std::vector<T> gradient;
    for (const double value : file.doubles(size))
      gradient.push_back(static_cast<T>(value * gradient_factor));
    adamw({}, {.learning_rate = 0.01, .step = step, .scale = 1 / gradient_factor}, view(parameter),
          view(gradient), view(m), view(v));
  }
  const auto last = file.doubles(size);
  double worst = 0;
  for (std::size_t i = 0; i < last.size(); ++i)
    worst =
        std::max(worst, std::abs(static_cast<double>(parameter[i]) - last[i]) / std::abs(last[i]));
  return worst;
}

TEST(AdamW, TwentyStepsAreThoseOfTorch) {
  EXPECT_LT(worst_relative_error<double>(1), 1e-12);
  EXPECT_LT(worst_relative_error<float>(1), 1e-4);
}

TEST(AdamW, ScaleMultipliesTheGradientFirst) { EXPECT_LT(worst_relative_error<double>(4), 1e-12); }

TEST(AdamW, WithoutDecayAZeroGradientChangesNothing) {
  std::vector<double> parameter{1.5, -2.0}, gradient{0.0, 0.0}, m(2), v(2);
  adamw({}, {.learning_rate = 0.1, .decays = false}, view(parameter), view(gradient), view(m),
        view(v));
  EXPECT_EQ(parameter, (std::vector<double>{1.5, -2.0}));
  adamw({}, {.learning_rate = 0.1, .decays = true}, view(parameter), view(gradient), view(m),
        view(v));
  EXPECT_DOUBLE_EQ(parameter[0], 1.5 * (1 - 0.1 * 0.1));
}

}  // namespace
}  // namespace ptrain::optim
