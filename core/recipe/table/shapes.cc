#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_shape = [](auto& recipe, std::size_t i) -> auto& { return recipe.shapes[i]; };

}  // namespace

void add_shapes(std::vector<Field>& all) {
  append(
      all,
      row({.path = "shapes[].name",
           .required = true,
           .description = "Name of the shape: letters, digits, `.`, `_`, `-`; no two alike."},
          in_shape, &Shape::name),
      row({.path = "shapes[].sequence",
           .unit = "tokens",
           .required = true,
           .range = {2, 1 << 24},
           .description = "Length of a packed row."},
          in_shape, &Shape::sequence),
      row({.path = "shapes[].global_batch_tokens",
           .unit = "tokens",
           .required = true,
           .range = {2, 1e12},
           .description = "Rows x sequence of one step over all ranks: a multiple of `sequence`."},
          in_shape, &Shape::global_batch_tokens),
      row({.path = "shapes[].steps",
           .unit = "steps",
           .range = {0, kMostSteps},
           .description = "Length of the shape; this or `tokens`."},
          in_shape, &Shape::steps),
      row({.path = "shapes[].tokens",
           .unit = "tokens",
           .range = {0, kMostTokens},
           .description = "Length of the shape in tokens, rounded up to whole steps."},
          in_shape, &Shape::tokens));
}

}  // namespace ptrain::recipe::table
