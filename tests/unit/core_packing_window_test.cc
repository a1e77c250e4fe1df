#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "core/packing/window.h"

namespace ptrain::packing {
namespace {

constexpr Strategy kBest = Strategy::kBestFitDecreasing;

TEST(Window, CutsSoThatPiecesShareOneToken) {
  // 10 tokens, 9 targets, rows of 4: [0, 4] [4, 8] [8, 9].
  EXPECT_EQ(whole_document(3, 10), (Range{3, 0, 9}));
  auto rows = pack_window(std::vector<Range>{{3, 0, 9}}, {kBest, 4}, 0);
  std::ranges::sort(rows, {}, [](const Row& row) { return row[0].begin; });
  EXPECT_EQ(rows, (std::vector<Row>{{{3, 0, 4}}, {{3, 4, 8}}, {{3, 8, 9}}}));
}

TEST(Window, DocumentsWithoutTargetsTakeNoPlace) {
  EXPECT_EQ(whole_document(0, 1).length(), 0);
  EXPECT_EQ(whole_document(0, 0).length(), 0);
  EXPECT_TRUE(pack_window(std::vector<Range>{{0, 0, 0}}, {kBest, 4}, 0).empty());
}

TEST(Window, TheKeyShufflesRowsOnly) {
  std::vector<Range> ranges;
  for (std::int64_t d = 0; d < 100; ++d) ranges.push_back({d, 0, 1 + d % 8});
  auto one = pack_window(ranges, {kBest, 8}, 1);
  auto two = pack_window(ranges, {kBest, 8}, 2);
  EXPECT_NE(one, two);
  EXPECT_EQ(one, pack_window(ranges, {kBest, 8}, 1));
  const auto by_first = [](const Row& row) { return row[0].document; };
  EXPECT_FALSE(std::ranges::is_sorted(one, {}, [](const Row& row) { return -row[0].length(); }));
  std::ranges::sort(one, {}, by_first);
  std::ranges::sort(two, {}, by_first);
  EXPECT_EQ(one, two);
}

TEST(Window, UnusedPiecesAreJoined) {
  const std::vector<Row> rows{{{1, 0, 4}}, {{2, 4, 8}, {1, 4, 6}}, {{2, 0, 4}}, {{1, 6, 7}}};
  EXPECT_EQ(unused_ranges(rows, 1), (std::vector<Range>{{1, 4, 7}, {2, 0, 8}}));
  EXPECT_EQ(unused_ranges(rows, 2), (std::vector<Range>{{1, 6, 7}, {2, 0, 4}}));
  EXPECT_TRUE(unused_ranges(rows, 4).empty());
}

RC_GTEST_PROP(Window, RowsHoldEachTargetOnce, ()) {
  const auto sequence = *rc::gen::inRange<std::int64_t>(1, 50);
  const auto lengths = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 200));
  std::vector<Range> ranges;
  for (const int length : lengths) ranges.push_back(whole_document(std::ssize(ranges), length));
  const auto strategy = *rc::gen::element(Strategy::kNextFit, Strategy::kFirstFit, kBest);
  const auto rows = pack_window(ranges, {strategy, sequence}, 9);
  for (const Row& row : rows) {
    std::int64_t filled = 0;
    for (const Range& range : row) filled += range.length();
    RC_ASSERT(filled >= 1 && filled <= sequence);
  }
  std::erase_if(ranges, [](const Range& range) { return range.length() == 0; });
  RC_ASSERT(unused_ranges(rows, 0) == ranges);
}

}  // namespace
}  // namespace ptrain::packing
