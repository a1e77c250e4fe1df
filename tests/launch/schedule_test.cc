// ptrain schedule through the real command.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

class Schedule : public RunFixture {
 protected:
  Schedule() : RunFixture(PTRAIN_SHIPPED_BINARY) {}

  int schedule(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "schedule");
    return run_command(std::move(arguments));
  }
  int made(const std::string& name, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {name, "--ranks", "4", "--micro-batches", "8"});
    return schedule(std::move(more));
  }
  int checked(const std::string& csv, std::vector<std::string> more = {}) {
    write("own.csv", csv);
    more.insert(more.begin(), {"--check", folder_ + "/own.csv"});
    return schedule(std::move(more));
  }
};

TEST_F(Schedule, ShowsOrderTimesAndStashes) {
  EXPECT_EQ(made("1f1b"), 0);
  EXPECT_TRUE(said("1f1b: 4 ranks, 4 stages, 8 micro-batches\n")) << output_;
  EXPECT_TRUE(said("   3           F0 B0    F1 B1    F2 B2")) << output_;
  EXPECT_TRUE(said("makespan 33, busiest rank 24, ")) << output_;
  EXPECT_TRUE(said("bubble 27.3 %")) << output_;
  EXPECT_TRUE(said("   0  4 (4; 4), busy 24, sends 8\n   1  3 (3; 3)")) << output_;
}

// The known answers of zb_v: its span has no bubble at equal costs.
TEST_F(Schedule, PrintsJsonWithTheStagesOfTheName) {
  EXPECT_EQ(made("zb_v", {"--json"}), 0);
  const auto json = nlohmann::json::parse(output_);
  EXPECT_EQ(json["stages"], 8);
  EXPECT_EQ(json["makespan"], 51);
  EXPECT_EQ(json["span_max"], 48);
  EXPECT_EQ(json["ranks"][3]["peak_stashes"]["freed_at_w"], 8);
  EXPECT_EQ(json["ranks"][0]["cells"][7]["stage"], 7);
  EXPECT_EQ(json["ranks"][0]["cells"][7]["start"], 7);
}

TEST_F(Schedule, TakesCosts) {
  EXPECT_EQ(made("zb_h1", {"--costs", "10,11,7,3", "--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(output_)["makespan"], 302);
  EXPECT_EQ(made("dualpipe_v", {"--overlapped", "2", "--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(output_)["makespan"], 44);
  EXPECT_EQ(made("zb_h1", {"--costs", "10,11"}), 2);
  EXPECT_TRUE(said("--costs: is F,I,W,COMM")) << output_;
  EXPECT_EQ(made("zb_h1", {"--costs", "1,0,1"}), 2);
  EXPECT_TRUE(said("costs nothing")) << output_;
}

TEST_F(Schedule, WritesCsvThatItReads) {
  EXPECT_EQ(made("dualpipe_v", {"--csv"}), 0);
  EXPECT_TRUE(said("(0F7;7B3)OVERLAP_F_B")) << output_;
  const std::string csv = output_;
  EXPECT_EQ(checked(csv, {"--csv"}), 0);
  EXPECT_EQ(output_, csv);
  EXPECT_EQ(made("chimera", {"--torch-csv"}), 2);
  EXPECT_TRUE(said("PyTorch has no words for two copies of the weights")) << output_;
}

TEST_F(Schedule, Draws) {
  EXPECT_EQ(made("zb_h1", {"--svg", folder_ + "/one.svg"}), 0);
  EXPECT_EQ(output_, "");
  EXPECT_TRUE(read(folder_ + "/one.svg").starts_with("<svg ")) << output_;
  EXPECT_EQ(made("zb_h1", {"--svg", folder_ + "/none/one.svg"}), 3);
  EXPECT_TRUE(said("there is no folder " + folder_ + "/none")) << output_;
  EXPECT_EQ(made("zb_h1", {"--csv", "--json"}), 2);
  EXPECT_TRUE(said("excludes")) << output_;
}

TEST_F(Schedule, Lists) {
  EXPECT_EQ(schedule({"--list"}), 0);
  EXPECT_TRUE(said("\ndualpipe_v                 1       2 ")) << output_;
  EXPECT_TRUE(said("p even, m even, m >= 2p")) << output_;
  EXPECT_EQ(schedule({"--list", "--json"}), 0);
  EXPECT_GE(nlohmann::json::parse(output_).size(), 20u);
}

TEST_F(Schedule, RefusesWithTheNearest) {
  EXPECT_EQ(schedule({}), 2);
  EXPECT_TRUE(said("--list")) << output_;
  EXPECT_EQ(schedule({"1f1b"}), 2);
  EXPECT_TRUE(said("needs --ranks and --micro-batches")) << output_;
  EXPECT_EQ(made("1f2b"), 2);
  EXPECT_TRUE(said("there is no schedule 1f2b")) << output_;
  EXPECT_EQ(made("zb_v", {"--virtual", "3"}), 2);
  EXPECT_TRUE(said("nearest that works: 2 virtual stages a rank")) << output_;
  EXPECT_EQ(made("gpipe", {"--memory-cap", "4"}), 2);
  EXPECT_TRUE(said("holds 8 stashes on a rank, more than the cap of 4")) << output_;
}

TEST_F(Schedule, ChecksFiles) {
  EXPECT_EQ(checked("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n"), 0);
  EXPECT_TRUE(said("own.csv: 2 ranks, 2 stages, 2 micro-batches")) << output_;
  EXPECT_EQ(checked("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"), 2);
  EXPECT_TRUE(said("hangs: rank 0 at 0B0 (cell 2) waits for 1B0 of rank 1")) << output_;
  EXPECT_EQ(checked("0F0,0B0\n1F0,1Q0\n"), 2);
  EXPECT_TRUE(said("own.csv:2:5: rank 1, cell 2 (1Q0): there is no word \"Q\"")) << output_;
  EXPECT_EQ(checked("0F0,0B0,0F1,0B1\n", {"--micro-batches", "1"}), 2);
  EXPECT_TRUE(said("rank 0, cell 3 (0F1): there are 1 micro-batches")) << output_;
  EXPECT_EQ(checked("0F0,0B0\n", {"--ranks", "2"}), 2);
  EXPECT_TRUE(said("has 1 rows, but --ranks is 2")) << output_;
}

TEST_F(Schedule, ChecksFilesWhereSendsWait) {
  const std::string crossed = "0SEND_F1,2RECV_F0\n1SEND_F0,1RECV_F1\n";
  EXPECT_EQ(checked(crossed, {"--blocking"}), 2);
  EXPECT_TRUE(said("the transfers hang: rank 0 at 0SEND_F1 (cell 1)")) << output_;
  const std::string one_f_one_b = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_EQ(checked(one_f_one_b), 0);
  EXPECT_EQ(checked(one_f_one_b, {"--blocking"}), 2);
  EXPECT_TRUE(said("the transfers hang")) << output_;
}

}  // namespace
}  // namespace ptrain
