#pragma once

#include <string>
#include <vector>

namespace ptrain::recipe {

// A rule between fields that a recipe breaks. The first path is where the user should look; the
// rule says nothing when one of `paths` has no good value in itself.
struct Breach {
  std::vector<std::string> paths;
  std::string message;  // what is wrong and what helps, without the path
  bool operator==(const Breach&) const = default;
};

}  // namespace ptrain::recipe
