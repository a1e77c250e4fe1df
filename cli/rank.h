#pragma once

#include "core/base/result.h"

namespace ptrain::cli {

// The rank that the launcher gave this process (PMIX_RANK, else OMPI_COMM_WORLD_RANK).
Result<int> rank_from_environment();

}  // namespace ptrain::cli
