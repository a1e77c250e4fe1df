#include "core/recipe/shapes.h"

namespace ptrain::recipe {

std::int64_t total_steps(const Recipe& recipe) {
  std::int64_t total = 0;
  for (const Shape& shape : recipe.shapes) total += shape.steps;
  return total;
}

ShapeSpan shape_after(const Recipe& recipe, std::int64_t step) {
  ShapeSpan span;
  for (std::size_t index = 0; index < recipe.shapes.size(); ++index) {
    span = {index, span.last_step + recipe.shapes[index].steps};
    if (step < span.last_step) break;
  }
  return span;
}

}  // namespace ptrain::recipe
