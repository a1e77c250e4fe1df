#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"

struct hwloc_topology;

namespace ptrain::cluster {

// What of this machine lies where, as hwloc sees it; of the machine in a file instead where hwloc's
// own variable HWLOC_XMLFILE names one.
class Topology {
 public:
  // Devices take longer to look for: tens of milliseconds.
  enum class Look { kCores, kDevices };
  static Result<Topology> find(Look look);

  // Cores with at least one hardware thread that this process is bound to.
  int usable_cores() const;
  std::int64_t memory_bytes() const;

  // GPUs of NVIDIA's on the bus, whether or not a driver can use them.
  int num_nvidia_gpus() const;

  // Names of RDMA devices such as mlx5_0, in the order of the bus.
  std::vector<std::string> nics() const;
  // Those of them that are nearest to a device at this address on the bus, 0000:17:00.0: on its
  // switch, else on its host bridge, else of its socket or memory. All where none is nearer or the
  // device is not there.
  std::vector<std::string> nics_near_device(const std::string& bus_id) const;
  // The same for `count` cores of this machine from the one with this number on.
  std::vector<std::string> nics_near_cores(int first, int count) const;

 private:
  struct Deleter {
    void operator()(hwloc_topology* topology) const;
  };
  explicit Topology(hwloc_topology* topology) : topology_(topology) {}

  std::unique_ptr<hwloc_topology, Deleter> topology_;
};

}  // namespace ptrain::cluster
