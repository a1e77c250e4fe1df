#pragma once

#include <chrono>
#include <string>

namespace ptrain::supervise {

// From now on processes whose parent dies become our children, so that none can slip away.
void adopt_orphans();

enum class Owned { kSpare, kKill };

// Kills every process below this one (the launcher, its ranks, their helpers) and waits until none
// is left. `owned` is a child whose owner waits for it: it is never reaped here, and with kSpare
// not killed either. False: some remain.
bool kill_descendants(int owned, Owned what, std::chrono::milliseconds limit, int apart = 0);

// Kills all processes of this machine that have the variable "NAME=VALUE" from their start on: what
// ranks have started and left behind, whoever its parent is now.
void kill_marked(const std::string& variable);

}  // namespace ptrain::supervise
