#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/mesh/buffer_plan.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "launcher/cluster/cluster.h"

namespace ptrain::plan {

// Documents by length: (tokens, how many).
using LengthHistogram = std::vector<std::pair<std::int64_t, std::int64_t>>;

// What one attention head does, mean over tokens. It takes the queries of a document block by block
// and multiplies them with all keys up to the block's last query.
struct AttentionLoad {
  double blocks = 0;
  double pairs = 0;
  bool operator==(const AttentionLoad&) const = default;
};

// Documents are cut into pieces of at most `sequence` tokens. No lengths: every row is one
// document.
AttentionLoad attention_load(std::int64_t sequence, const LengthHistogram& lengths,
                             std::int64_t block_rows);

// How the ranks of a run lie on the machine: rank r runs on node r / ranks_per_node.
struct Placement {
  int num_ranks = 1;
  int ranks_per_node = 1;
  int threads = 1;      // of one rank
  double slowdown = 1;  // above 1 where ranks share cores
  // A network moves bytes while we compute. Inside a node moving them is work of the core that
  // computes: measured, nothing hides there.
  bool overlaps = false;

  bool shares_memory() const { return num_ranks > 1 && num_ranks == ranks_per_node; }
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
};

}  // namespace ptrain::plan
