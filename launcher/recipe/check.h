#pragma once

#include <string>
#include <vector>

#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// A rule between fields that a recipe breaks. The first path is where the user should look; the
// rule says nothing when one of `paths` has no good value in itself.
struct Breach {
  std::vector<std::string> paths;
  std::string message;
  bool operator==(const Breach&) const = default;
};

// Every rule on a recipe as it was read, before what it leaves open is filled in.
std::vector<Breach> check(const Recipe& recipe);

}  // namespace ptrain::recipe
