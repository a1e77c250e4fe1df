#pragma once

#include <cstdint>

#include "engine/comm/communicator.h"

namespace ptrain::train {

// A rank that has more steps left than the others would wait for them alone at the end. Collective
// over the world; every rank throws EngineError (kEnvironment) where they differ.
void check_same_steps(comm::Communicator& world, std::int64_t num_left);

}  // namespace ptrain::train
