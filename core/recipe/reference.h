#pragma once

#include <string>

namespace ptrain::recipe {

// docs/recipe.md, made from the table of fields.
std::string recipe_reference();

}  // namespace ptrain::recipe
