#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>

#include "core/packing/bins.h"

namespace ptrain::packing {
namespace {

using Lengths = std::vector<std::int64_t>;

// Plain best-fit decreasing in O(items x bins): the number of bins.
std::int64_t plain_count(Lengths lengths, std::int64_t capacity) {
  std::ranges::stable_sort(lengths, std::greater<>());
  Lengths spaces;
  for (const std::int64_t length : lengths) {
    auto best = spaces.end();
    for (auto space = spaces.begin(); space != spaces.end(); ++space)
      if (*space >= length && (best == spaces.end() || *space < *best)) best = space;
    if (best == spaces.end()) best = spaces.insert(spaces.end(), capacity);
    *best -= length;
  }
  return std::ssize(spaces);
}

TEST(BestFit, HandCalculation) {
  // 7 | 6 | 5 open bins of 10; 4 fits best beside the 6, 3 beside the 7, 2 and 2 beside the 5.
  const Bins bins = best_fit_decreasing(Lengths{2, 5, 7, 4, 2, 6, 3}, 10);
  EXPECT_EQ(bins.count, 3);
  EXPECT_EQ(bins.bin_of, (Lengths{2, 2, 0, 1, 2, 1, 0}));
  EXPECT_EQ(bins.placed, (Lengths{2, 5, 1, 3, 6, 0, 4}));  // ties: the earlier item
}

TEST(BestFit, Edges) {
  EXPECT_EQ(best_fit_decreasing({}, 8).count, 0);
  EXPECT_EQ(best_fit_decreasing(Lengths{1, 1, 1}, 1).count, 3);
  EXPECT_EQ(best_fit_decreasing(Lengths{64, 64, 63, 1}, 64).count, 3);
  EXPECT_EQ(best_fit_decreasing(Lengths(4096, 1), 4096).count, 1);
  EXPECT_EQ(best_fit_decreasing(Lengths{5, 6}, std::int64_t{1} << 60).count, 1);
}

RC_GTEST_PROP(BestFit, AgreesWithThePlainForm, ()) {
  const auto capacity = *rc::gen::inRange<std::int64_t>(1, 9000);
  const auto lengths =
      *rc::gen::container<Lengths>(rc::gen::inRange<std::int64_t>(1, capacity + 1));
  const Bins bins = best_fit_decreasing(lengths, capacity);
  Lengths filled(static_cast<std::size_t>(bins.count), 0);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    filled.at(static_cast<std::size_t>(bins.bin_of[i])) += lengths[i];
  for (const std::int64_t tokens : filled) RC_ASSERT(tokens >= 1 && tokens <= capacity);
  RC_ASSERT(bins.count == plain_count(lengths, capacity));
}

// tests/fixtures/packing/prolong.txt (README there): real document lengths. Their packing
// efficiency with the published pure-Python best-fit decreasing was measured on a longer sample of
// the same list as .9929, .9953, .9983.
TEST(BestFit, RealLengthsFillRows) {
  std::ifstream file(std::string(std::getenv("PTRAIN_SOURCE_DIR")) +
                     "/tests/fixtures/packing/prolong.txt");
  Lengths lengths;
  for (std::int64_t length; file >> length;) lengths.push_back(length);
  ASSERT_EQ(lengths.size(), 6144u);
  const double tokens = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), 0LL));
  for (const auto& [capacity, efficiency] :
       {std::pair{4096, .9929}, {8192, .9953}, {32768, .9983}}) {
    Lengths pieces;
    for (std::int64_t length : lengths)
      for (; length > 0; length -= capacity)
        pieces.push_back(std::min<std::int64_t>(length, capacity));
    const auto count = static_cast<double>(best_fit_decreasing(pieces, capacity).count);
    EXPECT_NEAR(tokens / (count * capacity), efficiency, 0.002) << capacity;
  }
}

}  // namespace
}  // namespace ptrain::packing
