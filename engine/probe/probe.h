#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/comm/communicator.h"

namespace ptrain::probe {

// Measures what the planner plans with, in under two seconds: the rates of the engine's own kernels
// and collectives while all ranks of `world` are as busy. Collective over `world`; every rank
// returns the same, the slowest rank's figures, in the form of launcher/cluster/figures_json.h.
nlohmann::json run_probe(comm::Communicator& world);

}  // namespace ptrain::probe
