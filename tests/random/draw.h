#pragma once

#include <cstdint>
#include <optional>

#include "tests/random/case.h"

namespace ptrain::random {

// Case `index` of a seed's sequence, the same on every machine: kCasesOfProblem neighbours train
// the same problem. Layouts are drawn by the planner's own axes and rules (launcher/plan), so that
// whatever it may choose is drawn, and nothing else. ranks 0: 1 to 8. Nothing where the problem has
// no layout over so many ranks.
std::optional<Case> draw(std::uint64_t seed, std::int64_t index, int ranks = 0);
inline constexpr std::int64_t kCasesOfProblem = 3;

}  // namespace ptrain::random
