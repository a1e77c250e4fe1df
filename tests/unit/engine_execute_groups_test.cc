#include <gtest/gtest.h>

#include <numeric>

#include "core/mesh/part.h"
#include "engine/execute/groups.h"
#include "tests/support/ranks.h"
#include "tests/support/small_model.h"

namespace ptrain::execute {
namespace {

using mesh::Coordinates;
using mesh::Layout;

// World ranks of a group, by their place in it; none: the rank has no such group.
std::vector<int> members(comm::Communicator* group, int world_rank) {
  if (group == nullptr) return {};
  const auto size = static_cast<std::size_t>(group->size());
  std::vector<std::int64_t> offsets(size), counts(size, 1);
  std::iota(offsets.begin(), offsets.end(), 0);
  std::vector<int> ranks(size);
  ranks[static_cast<std::size_t>(group->rank())] = world_rank;
  group->all_gather_v(reinterpret_cast<std::byte*>(ranks.data()), DType::kInt32, offsets, counts)
      ->wait();
  return ranks;
}

// All ranks that `agree` with this one.
template <class Agree>
std::vector<int> expected(const Layout& layout, int rank, Agree agree) {
  const Coordinates own = mesh::coordinates_of(layout, rank);
  std::vector<int> ranks;
  for (int other = 0; other < layout.num_ranks(); ++other)
    if (agree(own, mesh::coordinates_of(layout, other))) ranks.push_back(other);
  if (ranks.size() == 1) ranks.clear();
  return ranks;
}

model::Architecture whole(bool tied) {
  recipe::Model model = support::small_sizes(64);
  model.tie_word_embeddings = tied;
  return *model::make_architecture(model, DType::kFloat32);
}

template <class Check>
void with_groups(const Layout& layout, bool tied, Check check) {
  tests::run_ranks(layout.num_ranks(), [&](comm::Communicator& world) {
    const auto part = *mesh::part_of(whole(tied), layout, world.rank());
    Groups groups(world, layout, part);
    check(groups.communicators(), world.rank());
    groups.close();
  });
}

TEST(Groups, AreTheRanksThatDifferInOneAxis) {
  Layout layout{.dp = 2, .shard = 2, .tp = 2, .pp = 2, .schedule = "1f1b"};
  with_groups(layout, false, [&](const Communicators& groups, int rank) {
    EXPECT_EQ(members(groups.tensor, rank), expected(layout, rank, [](auto a, auto b) {
                a.tp = b.tp;
                return a == b;
              }));
    EXPECT_EQ(members(groups.pipeline_forward, rank), expected(layout, rank, [](auto a, auto b) {
                a.pp = b.pp;
                return a == b;
              }));
    EXPECT_EQ(members(groups.shard_reduce, rank), expected(layout, rank, [](auto a, auto b) {
                a.shard = b.shard;
                return a == b;
              }));
    EXPECT_EQ(members(groups.dp_reduce, rank), expected(layout, rank, [](auto a, auto b) {
                a.dp = b.dp;
                return a == b;
              }));
    EXPECT_EQ(groups.tied, nullptr);
    EXPECT_EQ(groups.key_value_sums, nullptr);
    EXPECT_EQ(groups.experts, nullptr);
  });
}

// Rank 4 r + u of cp is place u of ulysses group r; shards are all ranks of shard x cp.
TEST(Groups, ContextsAreRingsOfNeighbours) {
  Layout layout{.shard = 2, .cp = 4, .ulysses = 2};
  with_groups(layout, false, [&](const Communicators& groups, int rank) {
    EXPECT_EQ(members(groups.ulysses, rank), (std::vector<int>{rank / 2 * 2, rank / 2 * 2 + 1}));
    const int first = rank / 4 * 4 + rank % 2;
    EXPECT_EQ(members(groups.ring, rank), (std::vector<int>{first, first + 2}));
    EXPECT_EQ(members(groups.shard_gather, rank), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  });
}

TEST(Groups, EndsOfAPipelineWithATiedHead) {
  Layout layout{.tp = 2, .pp = 3, .schedule = "1f1b"};
  with_groups(layout, true, [&](const Communicators& groups, int rank) {
    std::vector<int> ends = {rank % 2, 4 + rank % 2};
    if (rank / 2 == 1) ends.clear();
    EXPECT_EQ(members(groups.tied, rank), ends);
  });
}

// Two heads of keys and values on four ranks.
TEST(Groups, NeighboursThatHoldTheSameKeys) {
  Layout layout{.dp = 2, .tp = 4};
  with_groups(layout, false, [&](const Communicators& groups, int rank) {
    EXPECT_EQ(members(groups.key_value_sums, rank),
              (std::vector<int>{rank / 2 * 2, rank / 2 * 2 + 1}));
  });
}

}  // namespace
}  // namespace ptrain::execute
