#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "launcher/cluster/gpus.h"
#include "launcher/cluster/topology.h"

namespace ptrain::start {

// A rank's place on its node, as the plan counts places.
struct Place {
  int slot = 0;
  int threads = 1;
  int gpu = -1;  // among those that the rank sees; -1: none
};

// What that is in devices.
struct Seat {
  std::string gpu;                // "GPU 1 (0000:65:00.0)"; empty: none
  std::vector<std::string> nics;  // RDMA devices nearest to the GPU, or to the rank's cores
  bool nics_differ = false;       // others are farther away
  bool operator==(const Seat&) const = default;
};
Seat seat_of(const Place& place, const cluster::Topology& topology,
             const std::vector<cluster::Gpu>& visible);

// The same on this machine, of several places at once: devices are looked for once. What cannot be
// found out is left out.
std::vector<Seat> seats_here(const std::vector<Place>& places);
Seat seat_here(const Place& place);

// "GPU 1 (0000:65:00.0), NIC mlx5_1", for people; empty: nothing to tell.
std::string to_text(const Seat& seat);

// Variables by which the libraries of a rank find what is its own. `interface`: of the network on
// which ranks of other nodes are met; empty: there are none.
using Variables = std::vector<std::pair<std::string, std::string>>;
Variables variables_of(const Seat& seat, const std::string& interface);

// Sets those in this process that its user has not set, and returns them.
Variables set_variables(const Variables& variables);

}  // namespace ptrain::start
