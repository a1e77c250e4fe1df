#pragma once

#include "launcher/cluster/probe.h"

namespace ptrain::cli {

// Measures with ranks of this very program on this machine: mpirun starts `ptrain worker` in probe
// mode. Errors where there is no mpirun or no engine, or after 30 s.
cluster::ProbeRunner mpirun_probe();

}  // namespace ptrain::cli
