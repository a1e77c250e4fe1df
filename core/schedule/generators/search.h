#pragma once

#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// A short order of F, I and W on one stage a rank or on a V of two, under problem.costs, in which
// no rank ever holds more than problem.memory_cap stashes. The shortest of `known` that keep the
// cap and of what comes of ranks that decide by the clock (dispatch.h) under some limits on their
// forwards is annealed a few times. It looks at 108 orders and then at most at 480,000 changes of
// one, at a cost of O(cells) each; both are fewer where there are more cells, so that 8 ranks take
// a third of a second of a core and 64 ranks with 256 micro-batches three. The same for the same
// problem.
Result<Schedule> search(std::string_view name, const Problem& problem,
                        const std::vector<Schedule>& known);

}  // namespace ptrain::schedule
