#pragma once

#include <string>
#include <vector>

#include "core/run/plan.h"
#include "launcher/preflight/preflight.h"
#include "launcher/start/choose.h"

namespace ptrain::cli {

// Looks at nodes of the Slurm job that we are in, with `root` as a folder that they should share.
Result<std::vector<preflight::Finding>> look_at_nodes(const std::string& root,
                                                      const std::vector<std::string>& nodes,
                                                      const preflight::Needs& needs,
                                                      const start::Wanted& wanted = {});

// Whether this machine has healthy GPUs for the plan, where ranks are to run on some here.
Status check_gpus_here(const run::Plan& plan);

// Before the first attempt of a run: what is to know, or why it cannot start.
Result<preflight::Settled> preflight_run(const std::string& root, const run::Plan& plan);

}  // namespace ptrain::cli
