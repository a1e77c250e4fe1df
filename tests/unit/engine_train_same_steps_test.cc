#include <gtest/gtest.h>

#include <array>

#include "engine/base/engine_error.h"
#include "engine/train/same_steps.h"
#include "tests/support/ranks.h"

namespace ptrain::train {
namespace {

// What each of three ranks says when they have so many steps left; empty: nothing.
std::array<std::string, 3> said_with(std::array<std::int64_t, 3> left) {
  std::array<std::string, 3> said;
  tests::run_ranks(3, [&](comm::Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    try {
      check_same_steps(world, left[rank]);
    } catch (const EngineError& error) {
      said[rank] = error.error().message;
    }
  });
  return said;
}

TEST(SameSteps, EqualOnesPass) { EXPECT_EQ(said_with({7, 7, 7}), (std::array<std::string, 3>{})); }

TEST(SameSteps, EveryRankSaysWhereTheyDiffer) {
  const auto said = said_with({7, 5, 7});
  EXPECT_EQ(said[1], "rank 1 has 5 steps left in this shape, some ranks 5, others 7");
  EXPECT_EQ(said[2], "rank 2 has 7 steps left in this shape, some ranks 5, others 7");
  EXPECT_FALSE(said[0].empty());
}

}  // namespace
}  // namespace ptrain::train
