#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/parity/sketch.h"

namespace ptrain::parity {
namespace {

Sketch sketch_of(const std::vector<double>& values, std::int64_t first = 0) {
  Sketch sketch;
  for (std::size_t i = 0; i < values.size(); ++i)
    sketch.add(first + static_cast<std::int64_t>(i), values[i]);
  return sketch;
}

std::vector<double> normal_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> draw;
  std::vector<double> values(count);
  for (double& value : values) value = draw(random);
  return values;
}

TEST(Sketch, PiecesAddUpToTheWhole) {
  const auto values = normal_values(1000, 1);
  Sketch pieces = sketch_of({values.begin(), values.begin() + 300});
  pieces.add(sketch_of({values.begin() + 300, values.end()}, 300));
  EXPECT_LT(distance(pieces, sketch_of(values)), 1e-12);
}

// The estimate of a norm by 64 sums has a standard deviation of 1 / sqrt(2 * 64) = 0.09 of it.
TEST(Sketch, TheNormIsThatOfTheTensor) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto values = normal_values(10'000, seed);
    double squares = 0;
    for (const double value : values) squares += value * value;
    EXPECT_NEAR(sketch_of(values).norm() / std::sqrt(squares), 1, 0.35);
  }
}

TEST(Sketch, ASingleWrongElementShowsInFull) {
  const auto values = normal_values(100'000, 3);
  for (const std::size_t place : {0UL, 1UL, 63UL, 64UL, 99'999UL}) {
    auto wrong = values;
    wrong[place] += 0.25;
    EXPECT_NEAR(distance(sketch_of(wrong), sketch_of(values)), 0.25, 1e-9);
  }
}

TEST(Sketch, TwoSwappedElementsShow) {
  auto values = normal_values(1000, 4);
  const Sketch before = sketch_of(values);
  const double apart = std::abs(values[10] - values[11]);
  std::swap(values[10], values[11]);
  EXPECT_GT(distance(sketch_of(values), before), 0.9 * apart);
}

TEST(Sketch, WhatIsNotANumberStaysNone) {
  EXPECT_TRUE(std::isnan(sketch_of({1, std::nan(""), 2}).norm()));
}

}  // namespace
}  // namespace ptrain::parity
