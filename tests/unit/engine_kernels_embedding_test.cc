#include <gtest/gtest.h>

#include "engine/kernels/embedding.h"
#include "tests/support/matrix.h"

namespace ptrain::kernels {
namespace {

using test::Doubles;

const std::vector<std::int32_t> kTokens{2, 0, 2};

TEST(Embedding, GathersTheNamedRows) {
  auto table = Doubles::random(3, 5, 1, 2);
  Doubles y(3, 5, 1);
  gather_rows(table.view(), kTokens, y.view());
  for (std::int64_t c = 0; c < 5; ++c) {
    EXPECT_EQ(y(0, c), table(2, c));
    EXPECT_EQ(y(1, c), table(0, c));
    EXPECT_EQ(y(2, c), table(2, c));
  }
}

TEST(Embedding, AddsTheNamedRows) {
  auto table = Doubles::random(3, 5, 1, 2), y = Doubles::random(3, 5, 2, 1);
  const Doubles before = y;
  add_rows(table.view(), kTokens, y.view());
  for (std::int64_t c = 0; c < 5; ++c) {
    EXPECT_EQ(y(0, c), before(0, c) + table(2, c));
    EXPECT_EQ(y(1, c), before(1, c) + table(0, c));
  }
  EXPECT_TRUE(y.gaps_untouched());
}

TEST(Embedding, ReadsATableOfBFloat16) {
  auto table = test::Matrix<BFloat16>::random(3, 5, 1, 2);
  auto y = test::Matrix<float>(3, 5, 1);
  gather_rows(table.view(), kTokens, y.view());
  for (std::int64_t c = 0; c < 5; ++c) EXPECT_EQ(y(1, c), table(0, c));
  add_rows(table.view(), kTokens, y.view());
  for (std::int64_t c = 0; c < 5; ++c) EXPECT_EQ(y(2, c), table(2, c) + table(2, c));
  EXPECT_TRUE(y.gaps_untouched());
}

TEST(Embedding, AddsEveryUseOfARow) {
  auto dy = Doubles::random(3, 5, 1), dtable = Doubles::filled(3, 5, 1.0);
  scatter_add_rows(dy.view(), kTokens, dtable.view());
  for (std::int64_t c = 0; c < 5; ++c) {
    EXPECT_EQ(dtable(0, c), 1.0 + dy(1, c));
    EXPECT_EQ(dtable(1, c), 1.0);
    EXPECT_EQ(dtable(2, c), 1.0 + dy(0, c) + dy(2, c));
  }
}

TEST(Embedding, TokensWithoutARowAreZeroAndAddNothing) {
  auto table = Doubles::random(3, 5, 1, 2), dy = Doubles::random(3, 5, 2);
  const std::vector<std::int32_t> tokens{kNoRow, 1, kNoRow};
  auto y = Doubles::filled(3, 5, 7.0);
  gather_rows(table.view(), tokens, y.view());
  auto dtable = Doubles::filled(3, 5, 1.0);
  scatter_add_rows(dy.view(), tokens, dtable.view());
  for (std::int64_t c = 0; c < 5; ++c) {
    EXPECT_EQ(y(0, c), 0.0);
    EXPECT_EQ(y(1, c), table(1, c));
    EXPECT_EQ(y(2, c), 0.0);
    EXPECT_EQ(dtable(0, c), 1.0);
    EXPECT_EQ(dtable(1, c), 1.0 + dy(1, c));
    EXPECT_EQ(dtable(2, c), 1.0);
  }
}

TEST(Embedding, RefusesTokensOutsideTheTable) {
  Doubles table(3, 5), y(1, 5);
  for (const std::int32_t token : {-2, 3}) {
    const std::vector<std::int32_t> tokens{token};
    EXPECT_ANY_THROW(gather_rows(table.view(), tokens, y.view()));
    EXPECT_ANY_THROW(scatter_add_rows(y.view(), tokens, table.view()));
  }
}

}  // namespace
}  // namespace ptrain::kernels
