#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/packing/bins.h"
#include "core/packing/survey.h"

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

Lengths real_lengths(const std::string& list) {
  std::ifstream file(std::string(std::getenv("PTRAIN_SOURCE_DIR")) + "/tests/fixtures/packing/" +
                     list + ".counts");
  Lengths lengths;
  std::int64_t length = 0, count = 0;
  while (file >> length >> count)
    lengths.insert(lengths.end(), static_cast<std::size_t>(count), length);
  return lengths;
}

double best_fit_efficiency(const Lengths& lengths, std::int64_t capacity) {
  const Survey result = survey(lengths, capacity);
  EXPECT_EQ(result.packed.back().strategy, Strategy::kBestFitDecreasing);
  return result.packed.back().efficiency;
}

// tests/fixtures/packing (README there): real document lengths. What TRL's best-fit decreasing, in
// Python, made of the whole lists these are samples of.
TEST(BestFit, RealLengthsFillRows) {
  constexpr std::int64_t kCapacities[] = {4096, 8192, 32768, 131072};
  const auto check = [&](const std::string& list, std::size_t documents, const double(&full)[4]) {
    const Lengths lengths = real_lengths(list);
    ASSERT_EQ(lengths.size(), documents);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(best_fit_efficiency(lengths, kCapacities[i]), full[i], 0.001)
          << list << " " << kCapacities[i];
  };
  check("prolong", 46188, {.9929, .9953, .9983, .9992});
  check("wikipedia", 60064, {1.0000, 1.0000, .9998, .9998});
}

}  // namespace
}  // namespace ptrain::packing
