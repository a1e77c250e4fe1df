#pragma once

#include <cstdint>
#include <span>

#include "launcher/plan/parts.h"
#include "launcher/plan/search.h"

namespace ptrain::plan {

// Compiles the candidate's layout and fills in its bytes; and its times, by simulation, where these
// are no more than `memory`. `parts`: of the layout. Errors (kUsage): those of program::compile.
Status weigh(const SearchInput& input, std::span<const Part> parts, std::int64_t memory,
             Candidate& candidate);

}  // namespace ptrain::plan
