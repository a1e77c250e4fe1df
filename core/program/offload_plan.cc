#include "core/program/offload_plan.h"

#include <algorithm>
#include <numeric>

#include "core/base/divide.h"
#include "core/mesh/state_plan.h"

namespace ptrain::program {

std::vector<int> ring_buffers(const model::Architecture& architecture) {
  std::vector<int> buffers(static_cast<std::size_t>(architecture.num_groups()), -1);
  for (const model::ParameterSpec& parameter : architecture.parameters)
    if (!model::state_of(parameter, architecture.dtype).empty())
      buffers[static_cast<std::size_t>(parameter.group)] = 0;
  int next = 0;
  for (int& buffer : buffers)
    if (buffer == 0) buffer = next++ % kRingBuffers;
  return buffers;
}

OffloadPlan plan_offload(const model::Architecture& architecture,
                         std::span<const mesh::BufferPlan> plans, int shard_rank) {
  OffloadPlan out;
  out.buffers.assign(kRingBuffers, kPageBytes);
  const std::vector<int> buffers = ring_buffers(architecture);
  for (const mesh::BufferPlan& plan : plans) {
    const int buffer = buffers[static_cast<std::size_t>(plan.group)];
    const std::int64_t state = mesh::plan_state(architecture, plan.runs(shard_rank)).bytes;
    const std::int64_t bytes = round_up(state, kPageBytes);
    out.groups.push_back({buffer, out.store_bytes, bytes});
    out.store_bytes += bytes;
    if (buffer < 0) continue;
    std::int64_t& size = out.buffers[static_cast<std::size_t>(buffer)];
    size = std::max(size, bytes + kPageBytes);
  }
  return out;
}

std::int64_t OffloadPlan::ring_bytes() const {
  return std::accumulate(buffers.begin(), buffers.end(), std::int64_t{0});
}

}  // namespace ptrain::program
