#pragma once

#include "launcher/cluster/probe.h"

namespace ptrain::cli {

// Measures with ranks of this very program on one node: `ptrain worker` in probe mode, started as
// the ranks of a run are. Errors where nothing can start it, there is no engine, or after 30 s.
cluster::ProbeRunner start_probe();

}  // namespace ptrain::cli
