#include "engine/probe/probe.h"

#include <nlohmann/json.hpp>

#include "engine/probe/collectives.h"
#include "engine/probe/kernels.h"

namespace ptrain::probe {

nlohmann::json run_probe(comm::Communicator& world) {
  nlohmann::json out = {{"version", 4}, {"num_ranks", world.size()}};
  out["matmul_flops_per_s"] = matmul_rates(world);
  const auto& rates = out["matmul_flops_per_s"];
  out["matmul_shares"] = matmul_shares(world, DType::kFloat32, rates["float32"]);
  out["matmul_shares_bfloat16"] = matmul_shares(world, DType::kBFloat16, rates["bfloat16"]);
  out["attention"] = attention_seconds(world, DType::kFloat32);
  out["attention_bfloat16"] = attention_seconds(world, DType::kBFloat16);
  out["kept_bytes_per_s"] = kept_bytes_per_s(world);
  out["memory_bytes_per_s"] = memory_bytes_per_s(world);
  out["adamw_parameters_per_s"] = adamw_parameters_per_s(world);
  out["cross_entropy_logits_per_s"] = cross_entropy_logits_per_s(world);
  out["all_gather"] = all_gather_cost(world);
  out["reduce_scatter"] = reduce_scatter_cost(world);
  const auto window = window_cost(world);
  out["window"] = window.is_null() ? out["reduce_scatter"] : window;
  if (const auto disk = disk_rates(world); !disk.is_null()) out["disk"] = disk;
  return out;
}

}  // namespace ptrain::probe
