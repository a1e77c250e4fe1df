#pragma once

#include "core/mesh/layout.h"
#include "core/model/architecture.h"

namespace ptrain::mesh {

// Over which ranks a group's parameters lie: dense ones over shard x cp, with dp replicas; experts
// over eshard, with edp replicas (layout.h). What a program does with a group goes by these.

int num_shards_of(const model::GroupSpec& group, const Layout& layout);
int num_replicas_of(const model::GroupSpec& group, const Layout& layout);  // of each shard
// Over how many ranks its gradients are reduced.
int num_reduced(const model::GroupSpec& group, const Layout& layout);
// ZeRO 2 and 3: only the shard's gradients outlive a micro-batch.
bool shards_gradients(const model::GroupSpec& group, const Layout& layout);

// Which of the shards of a plan a rank has.
struct ShardRanks {
  int dense = 0;
  int experts = 0;
  int of(const model::GroupSpec& group) const { return group.experts ? experts : dense; }
  bool operator==(const ShardRanks&) const = default;
};
ShardRanks shard_ranks_of(const Layout& layout, int rank);
int shard_rank_of(const model::GroupSpec& group, const Layout& layout, int rank);
// Whether a rank is the first of the replicas that hold its shard: the one that counts in norms and
// checkpoints.
bool is_first_replica(const model::GroupSpec& group, const Layout& layout, int rank);

}  // namespace ptrain::mesh
