#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "engine/comm/communicator.h"

namespace ptrain::checkpoint {

// The bytes of every rank, by rank. Collective.
std::vector<std::string> gather_bytes(const std::string& mine, comm::Communicator& world);

// The same for the first rank alone; the others get nothing.
std::vector<std::string> gather_to_first(const std::string& mine, comm::Communicator& world);

// What `work` threw; none: nothing.
std::optional<Error> failure_of(const std::function<void()>& work);

// When any rank has a failure, all ranks throw one EngineError with all the reasons. Collective.
void agree_on(const std::optional<Error>& failure, comm::Communicator& world);

// Runs `work` on every rank; when it throws on any, all ranks throw one EngineError with all the
// reasons. Collective; `work` itself must not communicate.
void together(comm::Communicator& world, const std::function<void()>& work);

}  // namespace ptrain::checkpoint
