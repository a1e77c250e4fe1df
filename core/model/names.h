#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/architecture.h"

namespace ptrain::model {

// What torchtitan, now and earlier, calls the parameter that has this Hugging Face name. Empty: it
// has no such parameter.
std::vector<std::string> torchtitan_names(const std::string& name);

// Rows of one head where the parameter makes queries or keys that are turned by their positions,
// else 0. Hugging Face stores a head's rows in half order (all first elements of the pairs that are
// turned, then all second ones), torchtitan interleaved (pair after pair).
std::int64_t rotary_head_rows(const std::string& name, const recipe::Model& config);

}  // namespace ptrain::model
