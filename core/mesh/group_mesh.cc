#include "core/mesh/group_mesh.h"

namespace ptrain::mesh {

int num_shards_of(const model::GroupSpec& group, const Layout& layout) {
  return group.experts ? num_expert_shards(layout) : layout.num_shards();
}

int num_replicas_of(const model::GroupSpec& group, const Layout& layout) {
  return group.experts ? num_expert_replicas(layout) : layout.dp;
}

int num_reduced(const model::GroupSpec& group, const Layout& layout) {
  return num_shards_of(group, layout) * num_replicas_of(group, layout);
}

bool shards_gradients(const model::GroupSpec& group, const Layout& layout) {
  return layout.zero >= 2 && num_shards_of(group, layout) > 1;
}

ShardRanks shard_ranks_of(const Layout& layout, int rank) {
  return {coordinates_of(layout, rank).shard_rank(layout),
          expert_coordinates_of(layout, rank).eshard};
}

int shard_rank_of(const model::GroupSpec& group, const Layout& layout, int rank) {
  return shard_ranks_of(layout, rank).of(group);
}

bool is_first_replica(const model::GroupSpec& group, const Layout& layout, int rank) {
  return (group.experts ? expert_coordinates_of(layout, rank).edp
                        : coordinates_of(layout, rank).dp) == 0;
}

}  // namespace ptrain::mesh
