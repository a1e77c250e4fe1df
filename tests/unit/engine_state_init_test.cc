#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "engine/state/init.h"
#include "tests/support/small_model.h"

namespace ptrain::state {
namespace {

model::Architecture architecture() {
  model::Architecture result;
  result.config.num_hidden_layers = 8;  // residual projections are divided by 4
  result.config.initializer_range = 0.5;
  return result;
}

model::ParameterSpec parameter(const char* name, model::Init init = model::Init::kNormal) {
  model::ParameterSpec result;
  result.name = name;
  result.shape = {std::int64_t{1} << 20, std::int64_t{1} << 20};
  result.init = init;
  return result;
}

template <class T>
std::vector<T> values(const model::ParameterSpec& spec, std::uint64_t seed, std::int64_t begin,
                      std::int64_t end) {
  std::vector<T> result(static_cast<std::size_t>(end - begin), T(99));
  const DType dtype = sizeof(T) == 8 ? DType::kFloat64 : DType::kFloat32;
  initial_values(spec, architecture(), seed, begin, end,
                 contiguous(result.data(), dtype, 1, end - begin));
  return result;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& normals, double scale) {
  ASSERT_EQ(got.size(), normals.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], scale * normals[i], 1e-14) << "element " << i;
}

// The numbers are those of tests/fixtures/state/make_initial_values.py.
TEST(InitialValues, AreThoseOfAnIndependentReading) {
  const auto embedding = parameter("model.embed_tokens.weight");
  expect_near(values<double>(embedding, 1234, 0, 6),
              {0.035718188834223764, 0.15833734940569216, -1.428344659334037, -0.4625435389282133,
               0.97497128046712, 0.6229315698640638},
              0.5);
  const std::int64_t far = (std::int64_t{1} << 34) + 1;  // its block needs both counter words
  expect_near(values<double>(embedding, (std::uint64_t{1} << 63) + 5, far, far + 2),
              {-0.9372707114458848, -0.2197771086926177}, 0.5);
  const auto down = parameter("model.layers.0.mlp.down_proj.weight", model::Init::kResidualNormal);
  expect_near(values<double>(down, 1234, 0, 2), {-0.6223529240691054, -0.8688219197620177},
              0.5 / 4);
}

// Columns 3 and 4 of five rows of seven: elements 3, 4, 10, 11, ... of the whole.
TEST(InitialValues, OfAPartAreThoseOfItsPlaceInTheWhole) {
  model::ParameterSpec whole = parameter("w");
  whole.shape = {5, 7};
  model::ParameterSpec columns = whole;
  columns.shape = {5, 2};
  columns.whole_shape = whole.shape;
  columns.offsets = {0, 3};
  const auto all = values<double>(whole, 9, 0, 35);
  const auto part = values<double>(columns, 9, 1, 9);
  for (std::size_t i = 1; i < 9; ++i) EXPECT_EQ(part[i - 1], all[i / 2 * 7 + 3 + i % 2]) << i;
}

TEST(InitialValues, InSinglePrecisionAreThoseOfDoubleCast) {
  const auto spec = parameter("w");
  const auto exact = values<double>(spec, 7, 3, 1000);
  const auto cast = values<float>(spec, 7, 3, 1000);
  for (std::size_t i = 0; i < cast.size(); ++i) EXPECT_EQ(cast[i], static_cast<float>(exact[i]));
}

TEST(InitialValues, OfNormsAndBiasesAreConstant) {
  EXPECT_EQ(values<float>(parameter("norm", model::Init::kOnes), 1, 2, 5),
            (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(values<double>(parameter("bias", model::Init::kZeros), 1, 0, 2),
            (std::vector<double>{0, 0}));
}

// Of each matrix the first values, none zero and none another's.
TEST(InitialValues, OfEachExpertAreItsOwn) {
  const auto whole =
      model::make_architecture(support::small_model("qwen3_moe"), DType::kFloat64).value();
  std::set<std::vector<double>> seen;
  std::size_t matrices = 0;
  for (const auto& one : whole.parameters) {
    if (!whole.groups[static_cast<std::size_t>(one.group)].experts) continue;
    const auto first = values<double>(one, 3, 0, 4);
    EXPECT_EQ(std::ranges::count(first, 0.0), 0) << one.name;
    seen.insert(first);
    ++matrices;
  }
  EXPECT_EQ(matrices, 3u * 5);  // of the one layer that is not dense
  EXPECT_EQ(seen.size(), matrices);
}

TEST(InitialValues, HaveTheMomentsOfANormalDistribution) {
  const auto sample = values<double>(parameter("w"), 3, 0, 400000);
  double sum = 0, squares = 0, fourths = 0;
  for (const double x : sample) {
    const double z = x / 0.5;
    sum += z;
    squares += z * z;
    fourths += z * z * z * z;
  }
  const auto n = static_cast<double>(sample.size());
  EXPECT_NEAR(sum / n, 0, 0.008);  // five standard errors
  EXPECT_NEAR(squares / n, 1, 0.012);
  EXPECT_NEAR(fourths / n, 3, 0.08);
}

RC_GTEST_PROP(InitialValues, OfARangeAreThoseOfTheWhole, ()) {
  const auto begin = *rc::gen::inRange<std::int64_t>(0, 60);
  const auto end = *rc::gen::inRange<std::int64_t>(begin, 61);
  const auto whole = values<float>(parameter("w"), 11, 0, 60);
  const std::vector<float> part(whole.begin() + begin, whole.begin() + end);
  RC_ASSERT(values<float>(parameter("w"), 11, begin, end) == part);
}

}  // namespace
}  // namespace ptrain::state
