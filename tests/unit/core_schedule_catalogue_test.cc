#include <gtest/gtest.h>

#include "core/schedule/catalogue.h"

namespace ptrain::schedule {
namespace {

std::string line_of(const Schedule& schedule, int rank) {
  std::string text;
  for (const Cell& cell : schedule.ranks[static_cast<std::size_t>(rank)])
    text += to_text(cell) + " ";
  return text;
}

TEST(Catalogue, MakesByName) {
  const auto schedule =
      make("1f1b", {.num_ranks = 2, .num_virtual = 1, .num_micro_batches = 3, .costs = {}});
  ASSERT_TRUE(schedule);
  EXPECT_EQ(line_of(*schedule, 0), "0F0 0F1 0B0 0F2 0B1 0B2 ");
  EXPECT_EQ(line_of(*schedule, 1), "1F0 1B0 1F1 1B1 1F2 1B2 ");
}

TEST(Catalogue, PutsWeightsLast) {
  const auto schedule =
      make("1f1b_2bp", {.num_ranks = 2, .num_virtual = 1, .num_micro_batches = 2, .costs = {}});
  ASSERT_TRUE(schedule);
  EXPECT_EQ(line_of(*schedule, 0), "0F0 0F1 0I0 0I1 0W0 0W1 ");
}

TEST(Catalogue, RefusesWithTheNearest) {
  const auto unknown = make("1f2b", {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "there is no schedule 1f2b");
  const auto virtual_stages =
      make("gpipe", {.num_ranks = 2, .num_virtual = 2, .num_micro_batches = 2, .costs = {}});
  ASSERT_FALSE(virtual_stages);
  EXPECT_EQ(virtual_stages.error().message,
            "schedule gpipe does not run with 2 virtual stages a rank");
  EXPECT_EQ(virtual_stages.error().hint, "nearest that works: 1 virtual stages a rank");
  EXPECT_FALSE(
      make("gpipe", {.num_ranks = 2, .num_virtual = 1, .num_micro_batches = 0, .costs = {}}));
}

}  // namespace
}  // namespace ptrain::schedule
