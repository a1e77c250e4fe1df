#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launcher/parity/parity.h"

namespace ptrain::parity {

// A table of what was compared, then "equal" or what differs first.
std::string to_text(const ShapeParity& shape);
nlohmann::json to_json(const Outcome& outcome);

}  // namespace ptrain::parity
