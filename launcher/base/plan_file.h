#pragma once

#include <string>

#include "core/run/plan.h"

namespace ptrain {

// plan.json. A plan that cannot be read is an error of the user (kUsage) with the file's name.
Result<run::Plan> read_plan(const std::string& path);
Status write_plan(const std::string& path, const run::Plan& plan);  // by rename

}  // namespace ptrain
