#pragma once

#include <vector>

#include "core/recipe/node.h"
#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// A document against the table of fields. With violations, the fields they name hold defaults.
struct Reading {
  Recipe recipe;
  std::vector<Violation> violations;
};

Reading read_document(const Node& root);

}  // namespace ptrain::recipe
