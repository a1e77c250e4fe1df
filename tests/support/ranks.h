#pragma once

#include <functional>

#include "engine/comm/communicator.h"

namespace ptrain::tests {

// Plays `body` on `size` ranks, each a thread with its communicator, and closes the communicators.
// When a rank throws, the waits of the others end too; the first failure is thrown again, naming
// its rank.
void run_ranks(int size, const std::function<void(comm::Communicator&)>& body);

}  // namespace ptrain::tests
