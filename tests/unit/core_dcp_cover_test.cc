#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>

#include "core/dcp/cover.h"

namespace ptrain::dcp {
namespace {

std::optional<std::string> uncovered(const Sizes& shape, const std::vector<Box>& boxes) {
  std::vector<const Box*> all;
  for (const Box& box : boxes) all.push_back(&box);
  return dcp::uncovered(shape, std::move(all));
}

TEST(Cover, RunsAndSlicesOfAMatrix) {
  const std::vector<Box> runs = {
      {{0, 0}, {1, 4}}, {{1, 0}, {1, 2}}, {{1, 2}, {1, 2}}, {{2, 0}, {2, 4}}};
  EXPECT_FALSE(uncovered({4, 4}, runs));
  const std::vector<Box> columns = {{{0, 2}, {3, 2}}, {{0, 0}, {4, 2}}, {{3, 2}, {1, 2}}};
  EXPECT_FALSE(uncovered({4, 4}, columns));
  EXPECT_FALSE(uncovered({}, std::vector<Box>{{}}));
}

TEST(Cover, NamesTheFirstHoleAndTheFirstElementHeldTwice) {
  EXPECT_EQ(*uncovered({4}, std::vector<Box>{{{0}, {1}}, {{3}, {1}}}),
            "elements 1 to 3 are held by no rank");
  EXPECT_EQ(*uncovered({2, 3}, std::vector<Box>{{{0, 0}, {2, 2}}}),
            "elements 2 to 3 are held by no rank");
  EXPECT_EQ(*uncovered({2, 3}, std::vector<Box>{}), "elements 0 to 6 are held by no rank");
  EXPECT_EQ(*uncovered({2, 3}, std::vector<Box>{{{0, 0}, {2, 2}}, {{0, 1}, {2, 2}}}),
            "element 1 is held twice");
  EXPECT_EQ(*uncovered({}, std::vector<Box>{{}, {}}), "element 0 is held twice");
}

// Against counting, element by element.
TEST(Cover, AgreesWithCounting) {
  EXPECT_TRUE(rc::check("covered or not", [] {
    const Sizes shape = {*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 4)};
    const auto box = [&] {
      Box result{{0, 0}, {1, 1}};
      for (std::size_t d = 0; d < 2; ++d) {
        result.offsets[d] = *rc::gen::inRange<std::int64_t>(0, shape[d]);
        result.sizes[d] = *rc::gen::inRange<std::int64_t>(1, shape[d] - result.offsets[d] + 1);
      }
      return result;
    };
    std::vector<Box> boxes;
    const int count = *rc::gen::inRange(0, 5);
    for (int i = 0; i < count; ++i) boxes.push_back(box());
    std::vector<int> held(static_cast<std::size_t>(volume(shape)));
    for (const Box& b : boxes)
      for (std::int64_t r = b.offsets[0]; r < b.offsets[0] + b.sizes[0]; ++r)
        for (std::int64_t c = b.offsets[1]; c < b.offsets[1] + b.sizes[1]; ++c)
          ++held[static_cast<std::size_t>(r * shape[1] + c)];
    const bool once = std::ranges::all_of(held, [](int times) { return times == 1; });
    RC_ASSERT(!uncovered(shape, boxes) == once);
  }));
}

// 4,096 ranks with slices of a matrix each.
TEST(Cover, IsFastForManyBoxes) {
  std::vector<Box> boxes;
  for (std::int64_t row = 0; row < 512; ++row)
    for (std::int64_t column = 0; column < 8; ++column)
      boxes.push_back({{row * 16, column * 1024}, {16, 1024}});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(uncovered({8192, 8192}, boxes));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace ptrain::dcp
