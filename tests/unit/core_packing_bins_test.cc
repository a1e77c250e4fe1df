#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/packing/bins.h"

namespace ptrain::packing {
namespace {

using Lengths = std::vector<std::int64_t>;

// Bins of 10. Next fit: [2 5] [7] [4 2] [6 3]; the 7 closes the first bin, where a 3 would still
// fit.
TEST(NextFit, HandCalculation) {
  const Bins bins = next_fit(Lengths{2, 5, 7, 4, 2, 6, 3}, 10);
  EXPECT_EQ(bins.count, 4);
  EXPECT_EQ(bins.bin_of, (Lengths{0, 0, 1, 2, 2, 3, 3}));
  EXPECT_EQ(bins.placed, (Lengths{0, 1, 2, 3, 4, 5, 6}));
}

// First fit: [2 5 2] [7 3] [4 6]; the 2 goes back to the first bin, the 3 to the second.
TEST(FirstFit, HandCalculation) {
  const Bins bins = first_fit(Lengths{2, 5, 7, 4, 2, 6, 3}, 10);
  EXPECT_EQ(bins.count, 3);
  EXPECT_EQ(bins.bin_of, (Lengths{0, 0, 1, 2, 0, 2, 1}));
  EXPECT_EQ(bins.placed, (Lengths{0, 1, 2, 3, 4, 5, 6}));
}

// First fit takes the first bin with room, best fit the fullest: 5, 6 and then 4 in bins of 10.
TEST(FirstFit, IsNotBestFit) {
  EXPECT_EQ(first_fit(Lengths{5, 6, 4}, 10).bin_of, (Lengths{0, 1, 0}));
  EXPECT_EQ(best_fit_decreasing(Lengths{6, 5, 4}, 10).bin_of, (Lengths{0, 1, 0}));
  EXPECT_EQ(best_fit_decreasing(Lengths{5, 6, 4}, 10).bin_of, (Lengths{1, 0, 0}));
}

TEST(Pack, Edges) {
  for (const Strategy strategy :
       {Strategy::kNextFit, Strategy::kFirstFit, Strategy::kBestFitDecreasing}) {
    EXPECT_EQ(pack(strategy, {}, 8).count, 0);
    EXPECT_EQ(pack(strategy, Lengths{1, 1, 1}, 1).count, 3);
    EXPECT_EQ(pack(strategy, Lengths{64, 64, 63, 1}, 64).count, 3);
    EXPECT_EQ(pack(strategy, Lengths(4096, 1), 4096).count, 1);
    EXPECT_EQ(pack(strategy, Lengths{5, 6}, std::int64_t{1} << 60).count, 1);
  }
  EXPECT_EQ(pack(Strategy::kNextFit, Lengths{3, 8, 2, 7}, 10).count, 3);
  EXPECT_EQ(pack(Strategy::kFirstFit, Lengths{3, 8, 2, 7}, 10).bin_of, (Lengths{0, 1, 0, 2}));
  EXPECT_EQ(pack(Strategy::kBestFitDecreasing, Lengths{3, 8, 2, 7}, 10).count, 2);
}

// Plain first fit in O(items x bins).
Lengths plain_first_fit(const Lengths& lengths, std::int64_t capacity) {
  Lengths spaces, bin_of;
  for (const std::int64_t length : lengths) {
    std::size_t bin = 0;
    while (bin < spaces.size() && spaces[bin] < length) ++bin;
    if (bin == spaces.size()) spaces.push_back(capacity);
    spaces[bin] -= length;
    bin_of.push_back(static_cast<std::int64_t>(bin));
  }
  return bin_of;
}

RC_GTEST_PROP(FirstFit, AgreesWithThePlainForm, ()) {
  const auto capacity = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto lengths =
      *rc::gen::container<Lengths>(rc::gen::inRange<std::int64_t>(1, capacity + 1));
  RC_ASSERT(first_fit(lengths, capacity).bin_of == plain_first_fit(lengths, capacity));
}

RC_GTEST_PROP(NextFit, NeighbouringBinsHoldMoreThanOne, ()) {
  const auto capacity = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto lengths =
      *rc::gen::container<Lengths>(rc::gen::inRange<std::int64_t>(1, capacity + 1));
  const Bins bins = next_fit(lengths, capacity);
  Lengths filled(static_cast<std::size_t>(bins.count), 0);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    filled.at(static_cast<std::size_t>(bins.bin_of[i])) += lengths[i];
  for (std::size_t b = 0; b < filled.size(); ++b) {
    RC_ASSERT(filled[b] >= 1 && filled[b] <= capacity);
    if (b + 1 < filled.size()) RC_ASSERT(filled[b] + filled[b + 1] > capacity);
  }
}

}  // namespace
}  // namespace ptrain::packing
