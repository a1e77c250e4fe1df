#pragma once

#include <cstdint>
#include <span>

#include "core/mesh/buffer_plan.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "launcher/cluster/cluster.h"
#include "launcher/plan/cost/attention_load.h"

namespace ptrain::plan {

// How the ranks of a run lie on the machine: rank r runs on node r / ranks_per_node.
struct Placement {
  int num_ranks = 1;
  int ranks_per_node = 1;
  int threads = 1;      // of one rank
  double slowdown = 1;  // above 1 where ranks share cores
  // A network moves bytes while we compute. Inside a node moving them is work of the core that
  // computes: measured, nothing hides there.
  bool overlaps = false;
  bool on_gpus = false;  // one rank a GPU: rank r on number r % ranks_per_node of its node

  bool shares_memory() const { return num_ranks > 1 && num_ranks == ranks_per_node && !on_gpus; }
  bool operator==(const Placement&) const = default;
};

// All that the seconds of an action depend on.
struct CostContext {
  const model::Architecture& architecture;
  const mesh::Layout& layout;
  std::span<const mesh::BufferPlan> buffers;
  const cluster::Figures& figures;
  const cluster::TransferCost& link;
  const Placement& placement;
  std::int64_t sequence = 0;
  AttentionLoad attention;
  mesh::ShardRanks shards = {};  // whose state is moved: the fullest
};

}  // namespace ptrain::plan
