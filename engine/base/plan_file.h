#pragma once

#include <string>

#include "core/run/plan.h"

namespace ptrain {

// The plan that this rank runs. EngineError (kEnvironment) where the file cannot be read.
run::Plan read_plan(const std::string& path);

}  // namespace ptrain
