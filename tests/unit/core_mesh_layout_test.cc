#include <gtest/gtest.h>

#include "core/mesh/layout.h"

namespace ptrain::mesh {
namespace {

TEST(Layout, RankOrderByHand) {
  Layout layout;
  layout.pp = 2, layout.dp = 3, layout.shard = 2, layout.cp = 2, layout.tp = 4;
  // (((1 * 3 + 2) * 2 + 1) * 2 + 0) * 4 + 3
  const Coordinates c{.pp = 1, .dp = 2, .shard = 1, .cp = 0, .tp = 3};
  EXPECT_EQ(rank_of(layout, c), 91);
  EXPECT_EQ(coordinates_of(layout, 91), c);
  EXPECT_EQ(layout.num_ranks(), 96);
  EXPECT_EQ(c.data_rank(layout), 5);
}

TEST(Layout, ShardIsInsideDp) {
  Layout layout;
  layout.dp = 2, layout.shard = 3;
  EXPECT_EQ(coordinates_of(layout, 4), (Coordinates{.dp = 1, .shard = 1}));
  EXPECT_EQ(coordinates_of(layout, 2), (Coordinates{.dp = 0, .shard = 2}));
}

TEST(Layout, EveryRankThereAndBack) {
  Layout layout;
  layout.pp = 2, layout.dp = 3, layout.shard = 5, layout.cp = 1, layout.tp = 2;
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    EXPECT_EQ(rank_of(layout, coordinates_of(layout, rank)), rank);
  }
}

TEST(Layout, Text) {
  Layout layout;
  EXPECT_EQ(to_string(layout), "mb1x1");
  layout.dp = 2, layout.shard = 4, layout.zero = 3, layout.num_micro_batches = 4;
  EXPECT_EQ(to_string(layout), "dp2 shard4 zero3 mb1x4");
  layout.shard = 1, layout.micro_batch = 8, layout.recompute = recipe::Recompute::kFull;
  EXPECT_EQ(to_string(layout), "dp2 mb8x4 recompute");
  layout.recompute = recipe::Recompute::kSelective;
  EXPECT_EQ(to_string(layout), "dp2 mb8x4 selective");
}

}  // namespace
}  // namespace ptrain::mesh
