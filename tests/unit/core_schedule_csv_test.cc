#include <gtest/gtest.h>

#include <fstream>

#include "core/schedule/check.h"
#include "core/schedule/csv.h"
#include "tests/support/order_files.h"

namespace ptrain::schedule {
namespace {

std::string fixture(const std::string& name) {
  const char* root = std::getenv("PTRAIN_SOURCE_DIR");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/tests/fixtures/schedule/" +
                     name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Csv, ReadsCells) {
  const auto schedule =
      from_csv("0F0, 0F1 ,,(0F2;0B0)OVERLAP_F_B,\r\n1F0.1*0,1I3,1W3,1F2*1\r\n\n", "own.csv");
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_EQ(schedule->num_stages, 2);
  EXPECT_EQ(schedule->num_micro_batches, 4);
  EXPECT_EQ(schedule->num_slices, 2);
  const Cell sliced{.stage = 1, .slice = 1};
  const Cell copied{.stage = 1, .micro_batch = 2, .copy = 1};
  const Cell paired{.work = Work::kBackward, .pair = 0};
  EXPECT_EQ(schedule->ranks[1][0], sliced);
  EXPECT_EQ(schedule->ranks[1][1].work, Work::kBackwardInput);
  EXPECT_EQ(schedule->ranks[1][2].work, Work::kBackwardWeight);
  EXPECT_EQ(schedule->ranks[1][3], copied);
  EXPECT_EQ(schedule->ranks[0][3], paired);
}

std::string why(const std::string& text) {
  const auto schedule = from_csv(text, "own.csv");
  if (schedule) return "";
  EXPECT_EQ(schedule.error().place.file, "own.csv");
  return schedule.error().message;
}

TEST(Csv, NamesRankAndCellOfWhatItCannotRead) {
  EXPECT_EQ(why("0F0\n,1F0x\n"), "rank 1, cell 2 (1F0x): what is \"x\" at its end?");
  EXPECT_EQ(why("F0\n"), "rank 0, cell 1 (F0): does not start with the number of a stage");
  EXPECT_EQ(why("0Q0\n"), "rank 0, cell 1 (0Q0): there is no word \"Q\"");
  EXPECT_EQ(why("0F\n"), "rank 0, cell 1 (0F): F needs a micro-batch");
  EXPECT_EQ(why("0F9999999\n"), "rank 0, cell 1 (0F9999999): F needs a micro-batch");
  EXPECT_EQ(why("0F-1\n"), "rank 0, cell 1 (0F-1): there is no word \"F-\"");
  EXPECT_EQ(why("0F0.x\n"), "rank 0, cell 1 (0F0.x): slice and copy are numbers, like 2F7.1*0");
  EXPECT_EQ(why("(0F7;7B3OVERLAP_F_B\n"), "rank 0, cell 1 ((0F7;7B3OVERLAP_F_B): ( has no )");
  EXPECT_EQ(why("(0F7;7B3)\n"), "rank 0, cell 1 ((0F7;7B3)): a pair ends with OVERLAP_F_B");
  EXPECT_EQ(why("(0F7)OVERLAP_F_B\n"), "rank 0, cell 1 ((0F7)OVERLAP_F_B): a pair has two halves");
  EXPECT_EQ(why(" \n\n"), "the schedule is empty");
  EXPECT_TRUE(why("0BW3\n").find("BW is of an old form") != std::string::npos);
}

TEST(Csv, SaysWhereInTheFile) {
  const auto schedule = from_csv("0F0\n1F0,1Q0\n", "own.csv");
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().place, (Place{"own.csv", 2, 5}));
}

// PyTorch's own orders, with and without what PyTorch lowers them to: the work is the same, but
// that an I and its W side by side have become a B.
TEST(Csv, ReadsWhatPyTorchWrites) {
  int files = 0;
  for (const auto& row : test::read_table("torch/summary.csv")) {
    const std::string name = "torch/" + row.at("schedule") + "_p" + row.at("p") + "_v" +
                             row.at("v") + "_m" + row.at("m");
    const auto work = from_csv(fixture(name + "_compute.csv"), name);
    const auto lowered = from_csv(fixture(name + "_comms.csv"), name);
    ASSERT_TRUE(work) << work.error().message;
    ASSERT_TRUE(lowered) << lowered.error().message;
    EXPECT_TRUE(check(*work)) << name;
    EXPECT_TRUE(check(*lowered)) << name;
    EXPECT_EQ(to_csv(*work), fixture(name + "_compute.csv")) << name;
    const auto steps = steps_from_csv(fixture(name + "_comms.csv"), name);
    std::size_t count = 0;
    for (const auto& rank : *steps)
      for (std::size_t i = 0; i < rank.size(); ++i)
        count += i == 0 || rank[i].cell.pair < 0 || rank[i].cell.pair != rank[i - 1].cell.pair;
    EXPECT_EQ(count, std::stoul(row.at("actions_comms"))) << name;
    ++files;
  }
  EXPECT_EQ(files, 8);
}

TEST(Csv, WritesWhatItReads) {
  for (const char* name : {"chimera_p4_v2_m4.csv", "seq1f1b_p4_v1_m4_q2.csv",
                           "dualpipev_p4_v2_m8.csv", "zbv_p4_v2_m8.csv"}) {
    const Schedule order = test::read_order(name);
    const auto back = from_csv(to_csv(order), name);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(test::order_text(*back), test::order_text(order));
    EXPECT_EQ(back->num_slices, order.num_slices);
  }
}

TEST(Csv, RefusesToWriteForPyTorchWhatItCannotSay) {
  const auto error = [](const char* name) { return to_torch_csv(test::read_order(name)); };
  EXPECT_TRUE(error("zbv_p4_v2_m8.csv"));
  ASSERT_FALSE(error("chimera_p4_v2_m4.csv"));
  EXPECT_EQ(error("chimera_p4_v2_m4.csv").error().message,
            "PyTorch has no words for two copies of the weights");
  EXPECT_EQ(error("seq1f1b_p4_v1_m4_q2.csv").error().message,
            "PyTorch has no words for slices of micro-batches");
}

}  // namespace
}  // namespace ptrain::schedule
