#include "engine/train/progress.h"

namespace ptrain::train {

ShapeSpan shape_after(const recipe::Recipe& recipe, std::int64_t step) {
  ShapeSpan span;
  for (std::size_t index = 0; index < recipe.shapes.size(); ++index) {
    span = {index, span.last_step, span.last_step + recipe.shapes[index].steps};
    if (step < span.last_step) break;
  }
  return span;
}

std::int64_t total_steps(const recipe::Recipe& recipe) {
  std::int64_t total = 0;
  for (const auto& shape : recipe.shapes) total += shape.steps;
  return total;
}

}  // namespace ptrain::train
