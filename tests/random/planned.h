#pragma once

#include <map>
#include <string>

#include "launcher/plan/plan.h"
#include "tests/random/case.h"

namespace ptrain::random {

// What the planner makes of a recipe that fixes all of the case, on one node of many cores.
// `files`: the schedules that it names.
Result<plan::Planning> planned(const Case& one, std::map<std::string, std::string> files = {});

}  // namespace ptrain::random
