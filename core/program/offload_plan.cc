#include "core/program/offload_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/divide.h"
#include "core/mesh/state_plan.h"

namespace ptrain::program {

namespace {

// Of all ranks together, by group.
std::vector<std::int64_t> state_bytes(const model::Architecture& architecture) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(architecture.num_groups()));
  for (const model::ParameterSpec& parameter : architecture.parameters)
    for (const model::StateTensor& tensor : model::state_of(parameter, architecture.dtype))
      bytes[static_cast<std::size_t>(parameter.group)] +=
          tensor.num_values(parameter.num_elements()) * size_of(tensor.dtype);
  return bytes;
}

}  // namespace

std::vector<int> ring_buffers(const model::Architecture& architecture) {
  const std::vector<std::int64_t> bytes = state_bytes(architecture);
  std::vector<std::size_t> groups(bytes.size());
  std::iota(groups.begin(), groups.end(), std::size_t{0});
  std::erase_if(groups, [&](std::size_t group) { return bytes[group] == 0; });
  std::ranges::stable_sort(groups, std::greater{}, [&](std::size_t group) { return bytes[group]; });
  const std::size_t share = divide_up(groups.size(), std::size_t{kRingBuffers});
  std::vector<int> buffers(bytes.size(), -1);
  for (std::size_t i = 0; i < groups.size(); ++i) buffers[groups[i]] = static_cast<int>(i / share);
  return buffers;
}

std::vector<int> ring_order(const std::vector<int>& buffers) {
  std::vector<std::vector<int>> through(kRingBuffers);
  for (std::size_t group = 0; group < buffers.size(); ++group)
    if (buffers[group] >= 0)
      through[static_cast<std::size_t>(buffers[group])].push_back(static_cast<int>(group));
  std::vector<int> order;
  for (std::size_t i = 0; i < through.front().size(); ++i)
    for (const std::vector<int>& groups : through)
      if (i < groups.size()) order.push_back(groups[i]);
  return order;
}

std::int64_t offloaded_bytes(const model::Architecture& architecture, const mesh::BufferPlan& plan,
                             int shard_rank) {
  return round_up(mesh::plan_state(architecture, plan.runs(shard_rank)).bytes, kPageBytes);
}

OffloadPlan plan_offload(const model::Architecture& architecture,
                         std::span<const mesh::BufferPlan> plans, const mesh::ShardRanks& shards) {
  OffloadPlan out;
  out.buffers.assign(kRingBuffers, kPageBytes);
  const std::vector<int> buffers = ring_buffers(architecture);
  for (const mesh::BufferPlan& plan : plans) {
    const auto group = static_cast<std::size_t>(plan.group);
    const int buffer = buffers[group];
    const std::int64_t bytes =
        offloaded_bytes(architecture, plan, shards.of(architecture.groups[group]));
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
