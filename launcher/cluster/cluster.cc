#include "launcher/cluster/cluster.h"

#include <utility>

namespace ptrain::cluster {

void derive_kernel_figures(Figures& figures) {
  // Seconds of an attention head, times the best rate: what as many FLOPs of a matmul would take.
  const auto head = [&](double block, double pair, double pair_dim) {
    return HeadCost{block / figures.matmul_float32, pair / figures.matmul_float32,
                    pair_dim / figures.matmul_float32};
  };
  figures.matmul_shares = {{128, 1, 0.98}, {512, 1, 0.94}, {1024, 0.92, 0.85}};
  figures.matmul_bfloat16 = figures.matmul_float32;
  figures.matmul_shares_bfloat16 = figures.matmul_shares;
  figures.attention = {64, head(5.3e5, 64, 6.8), head(1.5e2, 0.15, 18)};
  figures.attention_bfloat16 = figures.attention;
  figures.kept_bytes_per_s = {figures.memory_bytes_per_s, figures.memory_bytes_per_s};
  figures.adamw_parameters_per_s = figures.memory_bytes_per_s / 28;
  figures.cross_entropy_logits_per_s = figures.memory_bytes_per_s / 16;
  figures.window = figures.reduce_scatter;
  figures.disk = {5e8, 5e8};
}

Figures default_figures() {
  Figures figures;
  figures.matmul_float32 = 5e10;
  figures.matmul_float64 = 2.5e10;
  figures.memory_bytes_per_s = 5e9;
  figures.all_gather = {2e-5, 1.5e9};
  figures.reduce_scatter = {2e-5, 1e9};
  derive_kernel_figures(figures);
  figures.assumed = true;
  figures.source = "assumed: no probe was made on this machine";
  return figures;
}

Figures default_gpu_figures() {
  Figures figures;
  figures.matmul_float32 = 1.5e13;
  figures.matmul_float64 = 8e12;
  figures.memory_bytes_per_s = 1.2e12;
  figures.all_gather = {2e-5, 1.5e11};
  figures.reduce_scatter = {2e-5, 1.5e11};
  derive_kernel_figures(figures);
  figures.matmul_bfloat16 = 2e14;
  figures.disk = {2.5e10, 2.5e10};  // 16 lanes of PCIe 4.0
  figures.assumed = true;
  figures.source = "assumed: GPUs are not measured";
  return figures;
}

TransferCost default_link() { return {5e-5, 1.1e9}; }
TransferCost default_gpu_link() { return {1e-5, 1.6e11}; }

Cluster unmeasured(std::string name, std::vector<Node> nodes) {
  const bool has_gpus = nodes.front().num_gpus > 0;
  return {std::move(name), std::move(nodes), has_gpus ? default_gpu_figures() : default_figures(),
          has_gpus ? default_gpu_link() : default_link()};
}

}  // namespace ptrain::cluster
