#pragma once

#include "core/program/action.h"
#include "launcher/plan/cost/context.h"

namespace ptrain::plan {

enum class Axis { kShard, kDp, kWorld };

// Ranks of one group along an axis, and whether any such group spans nodes.
struct Group {
  int size = 1;
  bool across_nodes = false;
  bool operator==(const Group&) const = default;
};
Group group_of(const mesh::Layout& layout, const Placement& placement, Axis axis);

// Collectives over `bytes`, the size of the whole buffer: every rank receives the runs of all the
// others.
double all_gather_seconds(double bytes, const Group& group, const CostContext& context);
double reduce_scatter_seconds(double bytes, const Group& group, const CostContext& context);
double all_reduce_seconds(double bytes, const Group& group, const CostContext& context);

// Seconds of what an action communicates: UNSHARD, REDUCE_GRAD (attribute axis=shard or axis=dp;
// without one both) and the count and norm of GRAD_NORM. 0 for the others.
double network_seconds(const program::Action& action, const CostContext& context);

}  // namespace ptrain::plan
