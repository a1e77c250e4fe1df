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

// Whether the GPUs of this machine are healthy, where the plan has ranks on some.
Status check_gpus_here(const run::Plan& plan);

// Before the first attempt of a run: warnings, or why it cannot start.
Result<std::vector<std::string>> preflight_run(const std::string& root, const run::Plan& plan);

}  // namespace ptrain::cli
