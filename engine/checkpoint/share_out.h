#pragma once

#include <cstddef>
#include <functional>

#include "engine/comm/communicator.h"

namespace ptrain::checkpoint {

// Threads that one rank may use while its peers, all on this machine, do the same.
int threads_of_rank(const comm::Communicator& world);

// Calls work(0) ... work(count - 1) on `threads` threads, the calling one among them, about in this
// order. When some throw, no further are begun, and what the first of them threw is thrown.
void share_out(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace ptrain::checkpoint
