#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/recipe/slurm.h"

namespace ptrain::start {

// Whether ranks get into it by options of srun's alone.
bool needs_srun(const recipe::Container& container);

// What stands between srun's own options and the worker: options of pyxis, or apptainer with its
// own. Nothing without a container. Ranks see the folders inside under the same names.
std::vector<std::string> opening(const recipe::Container& container,
                                 const std::vector<std::string>& folders);

// Whether this machine can run ranks in the container. Errors name what is missing. `srun_help`:
// what `srun --help` says, which lists the options of plugins.
Status check_container(const recipe::Container& container, const std::string& srun_help);

}  // namespace ptrain::start
