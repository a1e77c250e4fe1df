#pragma once

#include <string>
#include <vector>

#include "core/recipe/breach.h"
#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// Every rule on what a `parallel` of the recipe says of a pipeline: its schedule, how many stages
// there are, and lists of what each of them has. `prefix`: of its fields ("parallel.").
std::vector<Breach> check_pipeline(const Recipe& recipe, const Parallel& parallel,
                                   const std::string& prefix);

}  // namespace ptrain::recipe
