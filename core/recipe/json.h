#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"
#include "core/recipe/node.h"
#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// The resolved recipe as plan.json and checkpoints carry it. from_json(to_json(r)) == r.
nlohmann::json to_json(const Recipe& recipe);
Result<Recipe> from_json(const nlohmann::json& json);

// Where a model that no recipe spelled out has values that the table of fields does not allow.
std::vector<Violation> violations_of(const Model& model);

}  // namespace ptrain::recipe
