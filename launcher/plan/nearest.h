#pragma once

#include <optional>

#include "launcher/plan/enumerate.h"
#include "launcher/plan/search.h"

namespace ptrain::plan {

// Where no layout fits into the memory of a rank: the one that needs least, as its compiled
// programs count it. Best first like a search for the fastest, by bounds of bytes; where time runs
// out, one that needs little, and if none could be compiled, none. `work`: what may be spent, in
// the unit of kMostWork.
Result<std::optional<Rejected>> nearest_to_fit(const SearchInput& input, recipe::Offload offload,
                                               std::int64_t work);

}  // namespace ptrain::plan
