#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"
#include "launcher/cluster/cluster.h"

namespace ptrain::cluster {

// Figures as a probe writes them and as a cluster file gives them; all above zero:
//   {"matmul_flops_per_s": {"float32": .., "float64": ..},
//    "memory_bytes_per_s": ..,
//    "all_gather": {"latency_s": .., "bytes_per_s": ..},
//    "reduce_scatter": {..},
// and these, which may be left out (derive_kernel_figures):
//    "matmul_shares": [{"width": .., "forward": .., "backward": ..}, ..],
//    "attention": {"block_rows": .., "forward": {"block_s", "pair_s", "pair_dim_s"}, "backward":
//    {..}}, "attention_bfloat16": {..}, "kept_bytes_per_s": {"forward": .., "backward": ..},
//    "adamw_parameters_per_s": .., "cross_entropy_logits_per_s": .., "window": {"latency_s": ..,
//    "bytes_per_s": ..}}
// Errors (kEnvironment): a field that is missing, unknown, not a number, or not above zero;
// `message` begins with its JSON pointer.
Result<Figures> figures_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Figures& figures);

}  // namespace ptrain::cluster
