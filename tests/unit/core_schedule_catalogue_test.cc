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

Problem sizes(int num_ranks, int num_virtual, int num_micro_batches) {
  return {.num_ranks = num_ranks,
          .num_virtual = num_virtual,
          .num_micro_batches = num_micro_batches,
          .costs = {}};
}

std::string why(std::string_view name, const Problem& problem) {
  const auto schedule = make(name, problem);
  return schedule ? "" : schedule.error().message + "; " + schedule.error().hint;
}

TEST(Catalogue, RefusesWhatASchedulesNumbersAreNot) {
  EXPECT_EQ(
      why("zb_v", sizes(4, 3, 8)),
      "schedule zb_v does not run with 3 virtual stages a rank; nearest that works: 2 virtual "
      "stages a rank");
  EXPECT_EQ(why("dualpipe_v", sizes(4, 2, 7)),
            "schedule dualpipe_v has 7 micro-batches, less than twice its 4 ranks; nearest that "
            "works: 8 micro-batches");
  EXPECT_EQ(why("interleaved_1f1b", sizes(4, 2, 10)), "");  // groups of 5
  EXPECT_EQ(why("zb_v", sizes(4, 2, 3)), "");               // trimmed
  EXPECT_EQ(
      why("1f1b", sizes(100000, 1, 101)),
      "schedule 1f1b has 100000 stages and 101 micro-batches, too large a table; nearest that "
      "works: a product of 10000000");
}

TEST(Catalogue, RefusesGroupsThatWouldWait) {
  Problem problem = sizes(4, 2, 10);
  problem.group = 4;  // leaves 2, fewer than ranks
  EXPECT_EQ(why("interleaved_1f1b", problem),
            "schedule interleaved_1f1b has groups of 4 micro-batches, but 4 ranks and 10 "
            "micro-batches; nearest that works: groups of 5");
  problem.num_virtual = 1;
  EXPECT_EQ(why("1f1b", problem),
            "schedule 1f1b has no groups of micro-batches; nearest that works: none given");
}

TEST(Catalogue, KeepsTheCapOfStashes) {
  Problem problem = sizes(4, 1, 8);
  problem.memory_cap = 4;
  EXPECT_EQ(why("1f1b", problem), "");
  EXPECT_EQ(
      why("gpipe", problem),
      "schedule gpipe holds 8 stashes on a rank, more than the cap of 4; nearest that works: a "
      "cap of 8, or zb_auto and v_auto, which search under a cap");
  EXPECT_NE(why("1f1b_2bp", problem), "");
}

}  // namespace
}  // namespace ptrain::schedule
