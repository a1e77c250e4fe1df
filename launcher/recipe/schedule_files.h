#pragma once

#include <map>
#include <string>

#include "core/base/result.h"
#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// Whether a recipe's `schedule` is a file.
inline bool is_schedule_file(const std::string& schedule) { return schedule.ends_with(".csv"); }

// The texts of the files that a recipe names as schedules, by the names it gives them, which are
// relative to `folder`. Errors (kUsage): a file that cannot be read, or an order that cannot run.
Result<std::map<std::string, std::string>> read_schedule_files(const Recipe& recipe,
                                                               const std::string& folder);

}  // namespace ptrain::recipe
