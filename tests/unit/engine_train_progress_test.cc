#include <gtest/gtest.h>

#include "engine/train/progress.h"

namespace ptrain::train {
namespace {

recipe::Recipe three_shapes() {
  recipe::Recipe recipe;
  for (const std::int64_t steps : {3, 1, 5}) {
    recipe.shapes.emplace_back();
    recipe.shapes.back().steps = steps;
  }
  return recipe;
}

// Steps 1-3, 4, 5-9: after step 3 the first shape is done, and the second is next.
TEST(Progress, AShapeEndsWithItsLastStep) {
  const auto recipe = three_shapes();
  EXPECT_EQ(total_steps(recipe), 9);
  EXPECT_EQ(shape_after(recipe, 0), (ShapeSpan{0, 0, 3}));
  EXPECT_EQ(shape_after(recipe, 2), (ShapeSpan{0, 0, 3}));
  EXPECT_EQ(shape_after(recipe, 3), (ShapeSpan{1, 3, 4}));
  EXPECT_EQ(shape_after(recipe, 4), (ShapeSpan{2, 4, 9}));
  EXPECT_EQ(shape_after(recipe, 8), (ShapeSpan{2, 4, 9}));
}

TEST(Progress, PastTheEndIsTheLastShape) {
  const auto recipe = three_shapes();
  EXPECT_EQ(shape_after(recipe, 9), (ShapeSpan{2, 4, 9}));
  EXPECT_EQ(shape_after(recipe, 1000), (ShapeSpan{2, 4, 9}));
}

}  // namespace
}  // namespace ptrain::train
