#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launcher/plan/plan.h"

namespace ptrain::plan {

// A planning for people: for each shape its layouts, best first, with step time, tokens a second,
// MFU and MiB a rank by class. `explain` adds every layout, why the first is first, and what ruled
// out the others.
std::string to_text(const Planning& planning, bool explain);

// A planning for programs. Fields: docs/plan-json.md.
nlohmann::json to_json(const Planning& planning);

}  // namespace ptrain::plan
