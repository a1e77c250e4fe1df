#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/recipe/node.h"

namespace ptrain::recipe {

// The first thing about the raw text of a YAML file that is refused before it is parsed: size,
// byte order marks, bytes that are not UTF-8, control characters, tabs as indentation.
std::optional<Violation> violation_of_text(std::string_view text, const std::string& file);

}  // namespace ptrain::recipe
