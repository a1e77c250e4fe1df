#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ptrain::cluster {

// Slurm's short form of many names, in its order: "gpu[01-03,7],head" is gpu01, gpu02, gpu03, gpu7,
// head; a name may have several brackets. Containers often lack scontrol, which does the same.
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

}  // namespace ptrain::cluster
