#pragma once

#include <string>
#include <vector>

#include "core/recipe/node.h"

namespace ptrain::recipe {

// Puts `a.b.0.c=VALUE` (VALUE is YAML) into the document, in place of what was there. Everything
// wrong with the new value is reported under the override's own text in place of a file and line.
void apply_override(Node& root, const std::string& text, std::vector<Violation>& violations);

}  // namespace ptrain::recipe
