#pragma once

#include <cstddef>
#include <cstdint>

#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// Steps are counted from 1 through all shapes of a run.
std::int64_t total_steps(const Recipe& recipe);

struct ShapeSpan {
  std::size_t index = 0;       // in Recipe::shapes
  std::int64_t last_step = 0;  // of the shape
  bool operator==(const ShapeSpan&) const = default;
};
// The shape that the step after `step` finished ones belongs to; when all are done, the last shape.
ShapeSpan shape_after(const Recipe& recipe, std::int64_t step);

}  // namespace ptrain::recipe
