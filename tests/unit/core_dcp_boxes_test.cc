#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/dcp/boxes.h"

namespace ptrain::dcp {
namespace {

TEST(Boxes, RunInsideAMatrixIsHeadRowsAndTail) {
  // 4 x 5, elements 3..17: the end of row 0, rows 1 and 2, the start of row 3.
  const std::vector<Box> expected{{{0, 3}, {1, 2}}, {{1, 0}, {2, 5}}, {{3, 0}, {1, 2}}};
  EXPECT_EQ(boxes_of_run({4, 5}, 3, 17), expected);
}

TEST(Boxes, RunInsideOneRow) {
  EXPECT_EQ(boxes_of_run({4, 5}, 11, 13), (std::vector<Box>{{{2, 1}, {1, 2}}}));
}

TEST(Boxes, ScalarAndEmpty) {
  EXPECT_EQ(boxes_of_run({}, 0, 1), (std::vector<Box>{{{}, {}}}));
  EXPECT_TRUE(boxes_of_run({4, 5}, 7, 7).empty());
  EXPECT_TRUE(boxes_of_run({0, 5}, 0, 0).empty());
}

TEST(Boxes, LimitCutsRowsAndLongRows) {
  const std::vector<Box> rows{{{0, 0}, {2, 5}}, {{2, 0}, {2, 5}}};
  EXPECT_EQ(boxes_of_run({4, 5}, 0, 20, 11), rows);
  const std::vector<Box> pieces{{{0, 0}, {1, 3}}, {{0, 3}, {1, 2}}};
  EXPECT_EQ(boxes_of_run({1, 5}, 0, 5, 3), pieces);
}

TEST(Overlap, ColumnsOfATransposedChunk) {
  // The chunk is columns 2..4 of a 2 x 4 tensor, stored column by column.
  const StoredTensor stored{"float32", "data/0", 1, {2, 2}, {1, 2}};
  // Run 2..8: elements (0,2), (0,3) and row 1, of which (1,2) and (1,3) are stored.
  const std::vector<Copy> expected{{1, 0, 1}, {3, 1, 1}, {2, 4, 1}, {4, 5, 1}};
  EXPECT_EQ(overlap({2, 4}, {2, 8}, {0, 2}, stored), expected);
}

// A shape, a run of it, and every element named by its flat index.
RC_GTEST_PROP(Boxes, CoverTheRunOnceInOrder, ()) {
  const auto shape = *rc::gen::container<Sizes>(*rc::gen::inRange<std::size_t>(0, 5),
                                                rc::gen::inRange<std::int64_t>(1, 5));
  const std::int64_t all = volume(shape);
  const std::int64_t begin = *rc::gen::inRange<std::int64_t>(0, all + 1);
  const std::int64_t end = *rc::gen::inRange<std::int64_t>(begin, all + 1);
  const std::int64_t limit = *rc::gen::inRange<std::int64_t>(0, 9);
  const Sizes strides = row_major_strides(shape);
  std::int64_t next = begin;
  for (const Box& box : boxes_of_run(shape, begin, end, limit)) {
    const std::int64_t count = volume(box.sizes);
    if (limit > 0) RC_ASSERT(count <= limit);
    for (std::int64_t i = 0; i < count; ++i) {  // the i-th element of the box
      std::int64_t flat = 0;
      std::int64_t rest = i;
      for (std::size_t d = shape.size(); d-- > 0;) {
        flat += (box.offsets[d] + rest % box.sizes[d]) * strides[d];
        rest /= box.sizes[d];
      }
      RC_ASSERT(flat == next++);
    }
  }
  RC_ASSERT(next == end);
}

}  // namespace
}  // namespace ptrain::dcp
