#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/result.h"
#include "launcher/cluster/cluster.h"

namespace ptrain::cluster {

// This machine as a cluster of one node: physical cores that this process may run on, memory that
// it may use; the limits of a container (cgroup v2) count; GPUs that this process may use. Figures
// are the defaults until a probe replaces them.
Result<Cluster> this_host();

// The processor's name as the system prints it; empty where it does not.
std::string processor_name();

// cpu.max of cgroup v2: "200000 100000" is 2 cores; "max ..." and anything else is no limit.
std::optional<double> cores_from_cpu_max(std::string_view text);
// memory.max of cgroup v2: bytes; "max" and anything else is no limit.
std::optional<std::int64_t> bytes_from_memory_max(std::string_view text);

}  // namespace ptrain::cluster
