#pragma once

#include <string_view>
#include <vector>

#include "core/recipe/node.h"
#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// A document against the table of fields. With violations, the fields they name hold defaults.
struct Reading {
  Recipe recipe;
  std::vector<Violation> violations;
};

// Nothing is reported as missing in the section `incomplete`, part of which could not be read.
Reading read_document(const Node& root, std::string_view incomplete = "");

}  // namespace ptrain::recipe
