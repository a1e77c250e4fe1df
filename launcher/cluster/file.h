#pragma once

#include <string>

#include "core/base/result.h"
#include "launcher/cluster/cluster.h"

namespace ptrain::cluster {

// A cluster file (configs/clusters/*.yaml):
//   name: two-nodes
//   nodes:
//     - {name: node, count: 2, cores: 32, memory_gib: 256}     # count > 1: node-0, node-1
//       # gpus: 8, gpu_memory_gib: 80          # ranks run on these
//   figures:                                   # may be left out: defaults, marked as assumed
//     matmul_flops_per_s: {float32: 9.0e+10, float64: 4.5e+10}
//     memory_bytes_per_s: 8.0e+9
//     all_gather: {latency_s: 2.0e-5, bytes_per_s: 1.5e+9}
//     reduce_scatter: {latency_s: 2.0e-5, bytes_per_s: 1.0e+9}
//     ...                                      # more may be given: figures_json.h names all
//   link: {latency_s: 5.0e-5, bytes_per_s: 1.1e+9}             # between nodes; may be left out
// Errors (kUsage, with place): unknown, repeated or missing keys, values that are not above zero.
Result<Cluster> read_cluster(const std::string& path);
Result<Cluster> cluster_from_text(const std::string& text, const std::string& path);

}  // namespace ptrain::cluster
