#include "launcher/plan/cost/groups.h"

#include <algorithm>
#include <optional>

namespace ptrain::plan {

namespace {

struct Extent {
  int size = 1;
  int stride = 1;  // ranks between neighbours
};

std::optional<Extent> of_experts(const mesh::Layout& layout, MeshAxis axis) {
  const int sharers = layout.ep * layout.etp, shards = mesh::num_expert_shards(layout);
  if (axis == MeshAxis::kExperts) return Extent{sharers, 1};
  if (axis == MeshAxis::kExpertShard) return Extent{shards, sharers};
  if (axis == MeshAxis::kExpertDp)
    return Extent{mesh::num_expert_replicas(layout), sharers * shards};
  return std::nullopt;
}

Extent extent_of(const mesh::Layout& layout, MeshAxis axis) {
  if (const auto extent = of_experts(layout, axis)) return *extent;
  if (axis == MeshAxis::kWorld) return {layout.num_ranks(), 1};
  if (axis == MeshAxis::kRows) return {layout.cp * layout.tp, 1};
  if (axis == MeshAxis::kVocabulary)
    return {layout.pp * layout.tp, layout.num_ranks() / (layout.pp * layout.tp)};
  if (axis == MeshAxis::kShard) return {layout.num_shards(), layout.tp};
  const int ring = layout.cp / layout.ulysses;
  const int sizes[] = {layout.tp, layout.ulysses, ring, layout.shard, layout.dp, layout.pp};
  Extent extent;
  const auto index = static_cast<std::size_t>(axis);
  for (std::size_t inner = 0; inner < index; ++inner) extent.stride *= sizes[inner];
  extent.size = sizes[index];
  return extent;
}

// What one rank reaches on a level.
cluster::TransferCost cost_of(Level level, const Group& group, Transfer transfer,
                              const CostContext& context) {
  if (level == Level::kNode) {
    const bool in_window = context.layout.shared_window && !group.by_messages;
    cluster::TransferCost cost = in_window                       ? context.figures.window
                                 : transfer == Transfer::kGather ? context.figures.all_gather
                                                                 : context.figures.reduce_scatter;
    cost.latency_s *= context.placement.slowdown;
    cost.bytes_per_s /= context.placement.slowdown;
    return cost;
  }
  // All ranks of a node receive at once over one link.
  return {context.link.latency_s, context.link.bytes_per_s / context.placement.ranks_per_node};
}

}  // namespace

Group group_of(const mesh::Layout& layout, const Placement& placement, MeshAxis axis) {
  const Extent extent = extent_of(layout, axis);
  // Groups lie in blocks of size x stride neighbours; wherever a node ends inside such a block it
  // parts the members of one.
  const bool several_nodes = placement.num_ranks > placement.ranks_per_node;
  const bool parted = placement.ranks_per_node % (extent.size * extent.stride) != 0;
  const bool alone = extent.size == 1;
  return {.size = extent.size,
          .level = several_nodes && parted && !alone ? Level::kNetwork : Level::kNode};
}

double transfer_seconds(double bytes, const Group& group, Transfer transfer,
                        const CostContext& context) {
  if (group.size < 2) return 0;
  double seconds = 0;
  for (const Level level : {Level::kNode, Level::kNetwork}) {
    if (level > group.level) break;
    const auto cost = cost_of(level, group, transfer, context);
    seconds = std::max(seconds, cost.latency_s * (group.size - 1) + bytes / cost.bytes_per_s);
  }
  return seconds;
}

}  // namespace ptrain::plan
