#pragma once

#include <string>
#include <tl/expected.hpp>

#include "core/recipe/field.h"
#include "core/recipe/node.h"

namespace ptrain::recipe {

// The value of a field from what was written; the error says what is wrong and what is allowed,
// without the field's path.
tl::expected<Value, std::string> parse_value(const Field& field, const Node& scalar);

}  // namespace ptrain::recipe
