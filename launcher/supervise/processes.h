#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace ptrain::supervise {

// From now on processes whose parent dies become our children, so that none can slip away.
void adopt_orphans();

// Kills every process below this one (the launcher, its ranks, their helpers) and waits until none is
// left. `spare` (a pid, or 0) is neither killed nor reaped. False: some remain.
bool kill_descendants(int spare, std::chrono::milliseconds limit);

// How often this kernel has killed a process because memory ran out, since it was started.
std::int64_t out_of_memory_kills();

}  // namespace ptrain::supervise
