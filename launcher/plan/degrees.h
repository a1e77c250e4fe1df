#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/recipe/recipe.h"

namespace ptrain::plan {

std::string ranks_text(std::size_t num_ranks);  // "one rank", "4 ranks"

// Ranks that work on the same rows, as far as the recipe fixes them.
int fixed_sharers(const recipe::Parallel& fixed);
// pp x ep x etp, as far as the recipe fixes them: it divides the number of ranks.
std::int64_t fixed_expert_ranks(const recipe::Parallel& fixed);

// Whether the degrees that shape `name` fixes can belong to a layout of `num_ranks` ranks at all.
// Errors (kUsage): they do not divide it; or they leave one rank to the pipeline that another field
// asks for.
Status check_degrees(const std::string& name, const recipe::Parallel& fixed, int num_ranks);

}  // namespace ptrain::plan
