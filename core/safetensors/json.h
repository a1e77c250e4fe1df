#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain::safetensors {

bool is_printable(std::string_view text);  // ASCII without control characters

// What a message shows of a name in a foreign file: all of it, or its beginning.
std::string shown(std::string_view name);

// A JSON object of a foreign file. Errors (kUnusable): no JSON object; brackets deeper than
// `depth`; a name twice, or one that is not printable ASCII. `what` begins the message.
Result<nlohmann::json> parse_object(std::string_view text, std::string_view what, int depth);

}  // namespace ptrain::safetensors
