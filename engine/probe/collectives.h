#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/comm/communicator.h"

namespace ptrain::probe {

// {latency_s, bytes_per_s}: seconds for each peer, and bytes that a rank receives a second.
nlohmann::json all_gather_cost(comm::Communicator& world);
nlohmann::json reduce_scatter_cost(comm::Communicator& world);
// Adding the peers' gradients where they lie in a shared window; null where there is none.
nlohmann::json window_cost(comm::Communicator& world);

}  // namespace ptrain::probe
