#include "launcher/plan/cost/network.h"

#include <algorithm>

namespace ptrain::plan {

namespace {

using program::Action;
using program::Kind;

double exchange_seconds(double bytes, const Group& group, const cluster::TransferCost& inside,
                        const CostContext& context) {
  if (group.size < 2) return 0;
  const double peers = group.size - 1;
  const double received = bytes * peers / group.size;
  const double local =
      (inside.latency_s * peers + received / inside.bytes_per_s) * context.placement.slowdown;
  if (!group.across_nodes) return local;
  // All ranks of a node receive at once over one link.
  const double rate = context.link.bytes_per_s / context.placement.ranks_per_node;
  return std::max(local, context.link.latency_s * peers + received / rate);
}

double buffer_bytes(int group, const CostContext& context) {
  const auto& buffer = context.buffers[static_cast<std::size_t>(group)];
  return static_cast<double>(buffer.total() * size_of(context.architecture.dtype));
}

double reduce_seconds(const Action& action, const CostContext& context) {
  const auto axis = action.attribute("axis");
  const double bytes = buffer_bytes(action.group, context);
  double seconds = 0;
  if (axis.empty() || axis == "shard")
    seconds += reduce_scatter_seconds(
        bytes, group_of(context.layout, context.placement, Axis::kShard), context);
  if (axis.empty() || axis == "dp")
    seconds += all_reduce_seconds(bytes / context.layout.shard,
                                  group_of(context.layout, context.placement, Axis::kDp), context);
  return seconds;
}

}  // namespace

Group group_of(const mesh::Layout& layout, const Placement& placement, Axis axis) {
  const int size = axis == Axis::kShard ? layout.shard
                   : axis == Axis::kDp  ? layout.dp
                                        : layout.num_ranks();
  const int stride = axis == Axis::kDp ? layout.shard : 1;
  Group group{size, false};
  // A group is its first rank plus multiples of the stride; it spans nodes when its last rank lies
  // elsewhere.
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    if (rank / stride % size != 0) continue;
    const int last = rank + (size - 1) * stride;
    if (rank / placement.ranks_per_node != last / placement.ranks_per_node)
      group.across_nodes = true;
  }
  return group;
}

double all_gather_seconds(double bytes, const Group& group, const CostContext& context) {
  return exchange_seconds(bytes, group, context.figures.all_gather, context);
}

double reduce_scatter_seconds(double bytes, const Group& group, const CostContext& context) {
  return exchange_seconds(bytes, group, context.figures.reduce_scatter, context);
}

double all_reduce_seconds(double bytes, const Group& group, const CostContext& context) {
  return reduce_scatter_seconds(bytes, group, context) + all_gather_seconds(bytes, group, context);
}

double network_seconds(const Action& action, const CostContext& context) {
  constexpr double kNormBytes = 16;  // square norm and token count
  switch (action.kind) {
    case Kind::kUnshard:
      return all_gather_seconds(buffer_bytes(action.group, context),
                                group_of(context.layout, context.placement, Axis::kShard), context);
    case Kind::kReduceGrad:
      return reduce_seconds(action, context);
    case Kind::kGradNorm:
      return all_reduce_seconds(kNormBytes,
                                group_of(context.layout, context.placement, Axis::kWorld), context);
    default:
      return 0;
  }
}

}  // namespace ptrain::plan
