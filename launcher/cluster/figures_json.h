#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"
#include "launcher/cluster/cluster.h"

namespace ptrain::cluster {

// The measured part of Figures as a probe writes it:
//   {"version": 1, "num_ranks": 2, "matmul_flops_per_s": {"float32": .., "float64": ..},
//    "memory_bytes_per_s": .., "all_gather": {"latency_s": .., "bytes_per_s": ..},
//    "reduce_scatter": {..}}
// Errors (kEnvironment): a field that is missing, not a number, or not above zero.
Result<Figures> figures_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Figures& figures, int num_ranks);

}  // namespace ptrain::cluster
