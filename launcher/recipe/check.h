#pragma once

#include <vector>

#include "core/recipe/breach.h"
#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// Every rule on a recipe as it was read, before what it leaves open is filled in.
std::vector<Breach> check(const Recipe& recipe);

}  // namespace ptrain::recipe
