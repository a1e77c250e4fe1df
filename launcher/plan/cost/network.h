#pragma once

#include "core/program/action.h"
#include "launcher/plan/cost/groups.h"

namespace ptrain::plan {

// Collectives over `bytes`, the size of the whole buffer: every rank receives the runs of all the
// others.
double all_gather_seconds(double bytes, const Group& group, const CostContext& context);
double reduce_scatter_seconds(double bytes, const Group& group, const CostContext& context);
double all_reduce_seconds(double bytes, const Group& group, const CostContext& context);

// Seconds of what an action communicates: UNSHARD, REDUCE_GRAD (over shard, then dp), EXCHANGE, and
// the count and norm of GRAD_NORM. 0 for the others. In a shared window nothing is gathered.
double network_seconds(const program::Action& action, const CostContext& context);

}  // namespace ptrain::plan
