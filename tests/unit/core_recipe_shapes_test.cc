#include <gtest/gtest.h>

#include "core/recipe/shapes.h"

namespace ptrain::recipe {
namespace {

Recipe three_shapes() {
  Recipe recipe;
  for (const std::int64_t steps : {3, 1, 5}) {
    recipe.shapes.emplace_back();
    recipe.shapes.back().steps = steps;
  }
  return recipe;
}

// Steps 1-3, 4, 5-9: after step 3 the first shape is done, and the second is next.
TEST(Shapes, AShapeEndsWithItsLastStep) {
  const auto recipe = three_shapes();
  EXPECT_EQ(total_steps(recipe), 9);
  EXPECT_EQ(shape_after(recipe, 0), (ShapeSpan{0, 3}));
  EXPECT_EQ(shape_after(recipe, 2), (ShapeSpan{0, 3}));
  EXPECT_EQ(shape_after(recipe, 3), (ShapeSpan{1, 4}));
  EXPECT_EQ(shape_after(recipe, 4), (ShapeSpan{2, 9}));
  EXPECT_EQ(shape_after(recipe, 8), (ShapeSpan{2, 9}));
}

TEST(Shapes, PastTheEndIsTheLastShape) {
  const auto recipe = three_shapes();
  EXPECT_EQ(shape_after(recipe, 9), (ShapeSpan{2, 9}));
  EXPECT_EQ(shape_after(recipe, 1000), (ShapeSpan{2, 9}));
}

}  // namespace
}  // namespace ptrain::recipe
