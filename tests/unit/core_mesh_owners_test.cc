#include <gtest/gtest.h>

#include <algorithm>

#include "core/mesh/owners.h"

namespace ptrain::mesh {
namespace {

using model::BlockKind;
using model::ParameterSpec;

// Groups of matrices [m, n] and of one vector.
class Model {
 public:
  Model& matrix(std::int64_t m, std::int64_t n) { return add({m, n}, BlockKind::kMatrix); }
  Model& vector(std::int64_t n) { return add({n}, BlockKind::kElement); }
  Model& next_group() {
    ++group_;
    return *this;
  }
  const model::Architecture& architecture() {
    architecture_.layers.resize(static_cast<std::size_t>(group_) + 1);
    architecture_.groups.resize(architecture_.layers.size());
    return architecture_;
  }

 private:
  Model& add(std::vector<std::int64_t> shape, BlockKind block) {
    ParameterSpec spec;
    spec.shape = std::move(shape);
    spec.block = block;
    spec.group = group_;
    architecture_.parameters.push_back(std::move(spec));
    return *this;
  }
  model::Architecture architecture_;
  int group_ = 0;
};

// Costs by hand: 8 x 4 x 4 = 128, 8 x 2 x 2 = 32 (twice), 4 x 4 x 4 = 64. The first to rank 0, the
// others to rank 1: 128 on both. The vector evens out elements: 32 + 0 beside 16 + 16 + 16.
TEST(Owners, AreBalancedByCostThenByElements) {
  Model model;
  model.matrix(8, 4).next_group().matrix(2, 8).next_group().matrix(4, 4).next_group();
  model.matrix(8, 2).vector(5);
  EXPECT_EQ(assign_owners(model.architecture(), 2), (std::vector<int>{0, 1, 1, 1, 0}));
}

// Neighbours of one width are multiplied as one: 3 x 64 go together, and 4 x 3 x 3 elsewhere.
TEST(Owners, KeepNeighboursTogether) {
  Model model;
  model.matrix(4, 4).matrix(4, 4).matrix(4, 4).matrix(3, 5);
  EXPECT_EQ(assign_owners(model.architecture(), 3), (std::vector<int>{0, 0, 0, 1}));
}

TEST(Owners, OfGroupsWithoutMatricesAreNone) {
  Model model;
  model.vector(3).next_group().matrix(2, 2);
  EXPECT_EQ(assign_owners(model.architecture(), 2), (std::vector<int>{-1, 0}));
}

// Shards hold whole parameters without padding; ranks may have none.
TEST(Owners, PlansHaveNoPadding) {
  Model model;
  model.matrix(4, 4).vector(3).matrix(2, 3);
  const auto plans = plan_buffers(model.architecture(), 5);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].padding(), 0);
  EXPECT_EQ(plans[0].total(), 25);
  EXPECT_EQ(plans[0].shard_sizes, (std::vector<std::int64_t>{16, 6, 3, 0, 0}));
  EXPECT_EQ(plans[0].runs(1), (std::vector<ShardRun>{{2, 0, 6, 0}}));
  EXPECT_TRUE(plans[0].runs(4).empty());
  EXPECT_EQ(fullest_ranks(model.architecture(), plans).dense, 0);
}

// 80 layers of Llama-3-70B on 64 ranks: no rank orthogonalises for more than a fifth longer than
// the mean.
TEST(Owners, AreBalancedOnALargeModel) {
  Model model;
  for (int layer = 0; layer < 80; ++layer) {
    model.matrix(8192, 8192).matrix(1024, 8192).matrix(1024, 8192).matrix(8192, 8192);
    model.matrix(28672, 8192).matrix(28672, 8192).matrix(8192, 28672).next_group();
  }
  const auto& architecture = model.architecture();
  const auto owners = assign_owners(architecture, 64);
  std::vector<double> costs(64);
  double sum = 0;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const auto& shape = architecture.parameters[i].shape;
    const auto [least, most] = std::minmax(shape[0], shape[1]);
    const double cost = static_cast<double>(least * least) * static_cast<double>(most);
    costs[static_cast<std::size_t>(owners[i])] += cost;
    sum += cost;
  }
  EXPECT_LT(*std::ranges::max_element(costs), 1.2 * sum / 64);
}

}  // namespace
}  // namespace ptrain::mesh
