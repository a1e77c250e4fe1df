#pragma once

#include <string>

namespace ptrain::recipe {

// configs/recipe.schema.json, made from the table of fields: a JSON Schema (draft 7, the one that
// editors know best) that completes and checks a recipe while it is written. It knows names, types
// and ranges; what several fields must agree on, only the reader of recipes tells.
std::string recipe_schema();

}  // namespace ptrain::recipe
