#include <gtest/gtest.h>

#include "launcher/submit/rank_map.h"

namespace ptrain::submit {
namespace {

run::Plan plan(const char* first, const char* second, int gpus) {
  run::Plan plan;
  for (int rank = 0; rank < 4; ++rank)
    plan.ranks.push_back({rank, rank < 2 ? first : second, rank % 2, gpus > 0 ? rank % 2 : -1});
  return plan;
}

TEST(RankMap, TellsAllAndPerNode) {
  EXPECT_EQ(rank_map(plan("n1", "n2", 0)),
            "4 ranks on 2 nodes, 2 on each:\n"
            "  rank 0: n1, core 0\n"
            "  rank 1: n1, core 1\n"
            "  rank 2: n2, core 0\n"
            "  rank 3: n2, core 1\n");
  EXPECT_TRUE(
      rank_map(plan("any-1", "any-2", 0))
          .starts_with(
              "4 ranks on 2 nodes, 2 on each (any-N: the N-th that Slurm gives; its ranks use"));
}

TEST(RankMap, TellsTheDevicesOfNodesThatWereAsked) {
  const Seats seats{
      {"n1", {"GPU 0 (0000:11:00.0), NIC mlx5_0", "GPU 1 (0000:21:00.0), NIC mlx5_1"}}};
  EXPECT_EQ(rank_map(plan("n1", "n2", 2), seats),
            "4 ranks on 2 nodes, 2 on each:\n"
            "  rank 0: n1, core 0, GPU 0 (0000:11:00.0), NIC mlx5_0\n"
            "  rank 1: n1, core 1, GPU 1 (0000:21:00.0), NIC mlx5_1\n"
            "  rank 2: n2, core 0, GPU 0\n"
            "  rank 3: n2, core 1, GPU 1\n");
}

std::string refusal(const run::Plan& plan, int gpus_per_node) {
  const auto status = check_gpus(plan, gpus_per_node);
  return status ? "" : status.error().message;
}

TEST(RankMap, EachRankHasOneOfTheGpusThatAreAskedFor) {
  EXPECT_EQ(refusal(plan("n1", "n2", 2), 2), "");
  EXPECT_EQ(refusal(plan("n1", "n2", 2), 0), "");
  EXPECT_EQ(refusal(plan("n1", "n2", 0), 0), "");
  EXPECT_NE(refusal(plan("n1", "n2", 2), 1).find("1 for 2 ranks of a node"), std::string::npos);
  EXPECT_NE(refusal(plan("n1", "n2", 0), 2).find("ranks run on cores"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::submit
