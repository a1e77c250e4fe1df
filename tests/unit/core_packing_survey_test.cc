#include <gtest/gtest.h>

#include "core/packing/survey.h"

namespace ptrain::packing {
namespace {

using Lengths = std::vector<std::int64_t>;

// Rows of 10: 23 is cut into 10, 10 and 3. Next fit: [2 5] [10] [10] [3 7] [4]: 5 rows. First fit:
// [2 5 3] [10] [10] [7] [4]... 4 does not fit beside 7: 5 rows. Best fit: [10] [10] [7 3] [5 4]
// and [2]: 5 rows. 41 tokens.
TEST(Survey, HandCalculation) {
  const Survey result = survey(Lengths{2, 5, 23, 7, 4, 0}, 10);
  EXPECT_EQ(result.documents, 5);
  EXPECT_EQ(result.tokens, 41);
  EXPECT_EQ(result.longest, 23);
  EXPECT_EQ(result.cut, 1);
  EXPECT_EQ(result.histogram,
            (std::vector<LengthClass>{{2, 1, 2}, {4, 3, 16}, {8, 0, 0}, {16, 1, 23}}));
  ASSERT_EQ(result.packed.size(), 3u);
  for (const Packed& packed : result.packed) {
    EXPECT_EQ(packed.rows, 5);
    EXPECT_DOUBLE_EQ(packed.efficiency, 41.0 / 50);
  }
}

// 6 5 and 4 5: apart, best fit needs two rows and one; together 6 4 and 5 5.
TEST(Survey, WindowsArePackedByThemselves) {
  EXPECT_EQ(survey(Lengths{6, 5, 4, 5}, 10).packed.back().rows, 2);
  EXPECT_EQ(survey(Lengths{6, 5, 4, 5}, 10, 2).packed.back().rows, 3);
}

TEST(Survey, Edges) {
  const Survey none = survey({}, 8);
  EXPECT_EQ(none.documents, 0);
  EXPECT_TRUE(none.histogram.empty());
  EXPECT_EQ(none.packed.back(), (Packed{Strategy::kBestFitDecreasing, 0, 0}));
  EXPECT_EQ(survey(Lengths{0, 0}, 8).documents, 0);
}

}  // namespace
}  // namespace ptrain::packing
