#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/bfloat16.h"
#include "engine/kernels/convert.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Matrix;

std::uint16_t rounded(std::uint32_t word) { return BFloat16(std::bit_cast<float>(word)).bits; }

// Worked out by hand from the rule: to nearest, ties to the even significand.
TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(rounded(0x3f808000), 0x3f80);  // a tie above an even significand
  EXPECT_EQ(rounded(0x3f818000), 0x3f82);  // a tie above an odd one
  EXPECT_EQ(rounded(0x3f808001), 0x3f81);
  EXPECT_EQ(rounded(0x3f807fff), 0x3f80);
  EXPECT_EQ(rounded(0x3fffffff), 0x4000);  // carries into the exponent
  EXPECT_EQ(rounded(0x7f7fffff), 0x7f80);  // beyond the largest: infinity
  EXPECT_EQ(rounded(0x80000001), 0x8000);
}

TEST(BFloat16, KeepsInfinitiesAndNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(BFloat16(-infinity)), -infinity);
  // Its payload lies in the half that is cut off.
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0xffffffffu)))));
}

TEST(Convert, GoesBothWaysOverStridedRows) {
  auto from = Matrix<float>::random(3, 37, 1, 2);
  Matrix<BFloat16> narrow(3, 37, 5);
  Matrix<float> back(3, 37, 1);
  convert(from.view(), narrow.view());
  convert(narrow.view(), back.view());
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t c = 0; c < 37; ++c) {
      EXPECT_EQ(narrow(r, c).bits, BFloat16(from(r, c)).bits);
      EXPECT_NEAR(back(r, c), from(r, c), std::abs(from(r, c)) / 256);
    }
  EXPECT_TRUE(narrow.gaps_untouched() && back.gaps_untouched());
}

TEST(Convert, CopiesBetweenEqualDtypesAndRefusesOthers) {
  auto from = Matrix<double>::random(2, 3, 1);
  Matrix<double> to(2, 3);
  convert(from.view(), to.view());
  EXPECT_EQ(from.values, to.values);
  Matrix<float> single(2, 3);
  EXPECT_ANY_THROW(convert(from.view(), single.view()));
}

}  // namespace
}  // namespace ptrain::kernels
