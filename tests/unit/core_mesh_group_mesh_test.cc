#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "core/mesh/group_mesh.h"

namespace ptrain::mesh {
namespace {

constexpr model::GroupSpec kDense{0, false};
constexpr model::GroupSpec kExperts{0, true};

// Attention tp2 x cp2 x dp2, experts ep4 (Megatron-Core's example of folding): two ranks hold each
// expert, which cannot be sharded as dense parameters are, over four.
TEST(GroupMesh, ExpertsHaveShardsAndReplicasOfTheirOwn) {
  const Layout layout{.dp = 2, .cp = 2, .tp = 2, .ep = 4, .zero = 2};
  EXPECT_EQ(num_shards_of(kDense, layout), 2);
  EXPECT_EQ(num_replicas_of(kDense, layout), 2);
  EXPECT_EQ(num_shards_of(kExperts, layout), 2);
  EXPECT_EQ(num_replicas_of(kExperts, layout), 1);
  EXPECT_TRUE(shards_gradients(kExperts, layout));
  const Layout spread{.shard = 4, .ep = 4, .zero = 3};
  EXPECT_EQ(num_shards_of(kExperts, spread), 1);
  EXPECT_EQ(num_reduced(kExperts, spread), 1);
  EXPECT_FALSE(shards_gradients(kExperts, spread));
  EXPECT_TRUE(shards_gradients(kDense, spread));
}

// Of the ranks that hold the same experts each has one shard of one replica, and one of them is the
// first.
TEST(GroupMesh, HoldersDivideShardsAndReplicas) {
  for (const Layout& layout :
       {Layout{.dp = 2, .shard = 4, .tp = 2, .ep = 2, .etp = 2, .zero = 3},
        Layout{.dp = 6, .ep = 3}, Layout{.dp = 2, .shard = 2, .cp = 2, .ep = 4},
        Layout{.dp = 3, .shard = 2, .tp = 4}}) {
    std::map<std::pair<int, int>, std::set<std::pair<int, int>>> seats;
    std::map<std::tuple<int, int, int>, int> first;
    for (int rank = 0; rank < layout.num_ranks(); ++rank) {
      const ExpertCoordinates place = expert_coordinates_of(layout, rank);
      const int shard = shard_rank_of(kExperts, layout, rank);
      seats[{place.ep, place.etp}].insert({place.edp, shard});
      first[{place.ep, place.etp, shard}] += is_first_replica(kExperts, layout, rank) ? 1 : 0;
    }
    EXPECT_EQ(std::ssize(seats), layout.ep * layout.etp) << to_string(layout);
    for (const auto& [part, of_part] : seats)
      EXPECT_EQ(std::ssize(of_part), num_reduced(kExperts, layout)) << to_string(layout);
    for (const auto& [shard, count] : first) EXPECT_EQ(count, 1) << to_string(layout);
  }
}

}  // namespace
}  // namespace ptrain::mesh
