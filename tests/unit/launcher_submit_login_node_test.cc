#include <gtest/gtest.h>

#include "launcher/submit/login_node.h"

namespace ptrain::submit {
namespace {

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

NodeLine node(const char* name, int cores, std::vector<std::string> features = {}) {
  return {name, cores, 1, 4 * kGibibyte, std::move(features), {"all"}, NodeState::kIdle};
}

LoginNode four_nodes() {
  LoginNode seen;
  seen.cluster = "test";
  seen.partitions = {{"all", true, true, 4, 0, "UNLIMITED", {}},
                     {"short", false, true, 1, 0, "00:10:00", {"physics"}},
                     {"shut", false, false, 1, 0, "UNLIMITED", {}}};
  seen.nodes = {node("node1", 8), node("node2", 4), node("node3", 8, {"ib"}), node("node4", 8)};
  seen.nodes[0].partitions = {"all", "short"};
  seen.mpi_plugins = "MPI plugin types are...\n\tpmix\n\tnone\n";
  return seen;
}

recipe::Slurm asked(int nodes, const char* partition = "") {
  recipe::Slurm slurm;
  slurm.nodes = nodes;
  slurm.partition = partition;
  return slurm;
}

std::string refusal(const LoginNode& seen, const recipe::Slurm& slurm) {
  const auto status = check(seen, slurm);
  return status ? "" : status.error().message + " / " + status.error().hint;
}

TEST(LoginNode, TakesWhatFits) {
  EXPECT_EQ(refusal(four_nodes(), asked(4)), "");
  EXPECT_EQ(refusal(four_nodes(), asked(1, "short")), "");
}

TEST(LoginNode, TooManyNodes) {
  EXPECT_EQ(refusal(four_nodes(), asked(5)),
            "cluster.slurm.nodes: 5 nodes, but partition 'all' has 4 (4 idle) / ask for 4 or fewer "
            "with --nodes, or for another --partition");
  LoginNode mixed = four_nodes();
  mixed.nodes[1].state = NodeState::kBusy;
  mixed.nodes[2].state = NodeState::kDrained;
  mixed.nodes[3].state = NodeState::kDown;
  EXPECT_NE(refusal(mixed, asked(5)).find("has 4 (1 idle, 1 busy, 1 drained, 1 down)"),
            std::string::npos);
  EXPECT_NE(refusal(mixed, asked(2, "short"))
                .find("'short' has 1 (1 idle) / ask for 1 or fewer with --nodes, or for another "
                      "--partition (all gives up to 4)"),
            std::string::npos)
      << refusal(mixed, asked(2, "short"));
  recipe::Slurm with_feature = asked(2);
  with_feature.constraint = "ib";
  EXPECT_NE(refusal(four_nodes(), with_feature).find("has 4 (4 idle), 1 of them as asked for"),
            std::string::npos);
  recipe::Slurm without_number = asked(0, "short");  // one node
  without_number.constraint = "ib";
  EXPECT_NE(refusal(four_nodes(), without_number)
                .find("1 nodes, but partition 'short' has 1 (1 idle), 0 of them as asked for / ask "
                      "for others with --nodes, or for another --partition (all gives up to 1)"),
            std::string::npos)
      << refusal(four_nodes(), without_number);
  LoginNode limited = four_nodes();
  limited.partitions[0].most_nodes = 2;
  EXPECT_NE(refusal(limited, asked(3)).find("at most 2 a job"), std::string::npos);
}

TEST(LoginNode, PartitionAccountAndTime) {
  EXPECT_NE(refusal(four_nodes(), asked(1, "shrot")).find("there are all*, short, shut"),
            std::string::npos);
  EXPECT_NE(refusal(four_nodes(), asked(1, "shut")).find("takes no jobs"), std::string::npos);
  recipe::Slurm slurm = asked(1, "short");
  slurm.account = "maths";
  EXPECT_NE(refusal(four_nodes(), slurm).find("its accounts are physics"), std::string::npos);
  slurm = asked(1, "short");
  slurm.time = "11";
  EXPECT_NE(refusal(four_nodes(), slurm).find("limit of partition 'short', 00:10:00"),
            std::string::npos);
  slurm.time = "10";
  EXPECT_EQ(refusal(four_nodes(), slurm), "");
  slurm.time = "10 minutes";
  EXPECT_NE(refusal(four_nodes(), slurm).find("no time that Slurm knows"), std::string::npos);
}

TEST(LoginNode, PmixIsNeededForSeveralNodesOnly) {
  LoginNode seen = four_nodes();
  seen.mpi_plugins = "MPI plugin types are...\n\tnone\n\tpmi2\n";
  EXPECT_EQ(refusal(seen, asked(1)), "");
  recipe::Cluster cluster;
  cluster.slurm = asked(2);
  const auto status = check_plugins(seen, cluster);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("PMIx"), std::string::npos);
  cluster.launcher = recipe::RankLauncher::kMpirun;
  EXPECT_TRUE(check_plugins(seen, cluster));
  EXPECT_TRUE(check_plugins(four_nodes(), {}));
}

TEST(LoginNode, PlansForTheLeastNodesThatItMayGet) {
  std::vector<std::string> notes;
  const auto two = planned_nodes(four_nodes(), asked(2), kGibibyte, notes);
  ASSERT_EQ(two.nodes.size(), 2u);
  EXPECT_EQ(two.name, "slurm-test");
  EXPECT_EQ(two.nodes[1].name, "any-2");
  EXPECT_EQ(two.nodes[1].num_cores, 4);
  EXPECT_EQ(two.nodes[1].memory_bytes, 4 * kGibibyte);
  EXPECT_EQ(notes.size(), 1u) << "that nodes differ";

  LoginNode seen = four_nodes();
  seen.excluded = {"node2"};
  EXPECT_EQ(planned_nodes(seen, asked(2), kGibibyte, notes).nodes[0].num_cores, 8);
  EXPECT_EQ(notes.size(), 1u);
}

TEST(LoginNode, LeavesOutNodesThatAreDownWhereOthersAreEnough) {
  LoginNode seen = four_nodes();
  seen.nodes[1].state = NodeState::kDrained;
  EXPECT_EQ(nodes_for(seen, asked(3)).size(), 3u);
  EXPECT_EQ(nodes_for(seen, asked(4)).size(), 4u) << "it may come back while the job waits";
}

TEST(LoginNode, SaysWhatTheJobWaitsFor) {
  LoginNode seen = four_nodes();
  EXPECT_EQ(wait_of(seen, asked(4)), "");
  seen.nodes[1].state = NodeState::kBusy;
  EXPECT_EQ(wait_of(seen, asked(3)), "");
  EXPECT_EQ(wait_of(seen, asked(4)),
            "partition 'all' has 4 nodes that the job could get (3 idle, 1 busy): it waits until 4 "
            "are idle");
  seen.nodes[2].state = NodeState::kDown;
  EXPECT_EQ(wait_of(seen, asked(4)),
            "partition 'all' has 4 nodes that the job could get (2 idle, 1 busy, 1 down): it waits "
            "until 4 are up; 2 or fewer (--nodes) could start now");
  seen.excluded = {"node3"};
  EXPECT_EQ(wait_of(seen, asked(2)), "");
  for (auto& one : seen.nodes) one.state = NodeState::kDown;
  EXPECT_EQ(wait_of(seen, asked(1)),
            "partition 'all' has 3 nodes that the job could get (3 down): it waits until 1 are up");
}

TEST(LoginNode, ConstraintsOfSeveralWordsAreLeftToSlurm) {
  recipe::Slurm slurm = asked(4);
  slurm.constraint = "ib|eth";
  EXPECT_EQ(refusal(four_nodes(), slurm), "");
}

TEST(LoginNode, ExplainsSlurmsReason) {
  EXPECT_NE(explanation(four_nodes(), asked(9), "Requested node configuration is not available")
                .find("has 4"),
            std::string::npos);
  EXPECT_NE(
      explanation(four_nodes(), asked(1), "Invalid account or account/partition").find("sacctmgr"),
      std::string::npos);
  EXPECT_EQ(explanation(four_nodes(), asked(1), "Socket timed out"), "");
  recipe::Slurm gpus = asked(1);
  gpus.gpus_per_node = 9;
  EXPECT_NE(explanation(four_nodes(), gpus, "Requested node configuration is not available")
                .find("no nodes with as many GPUs"),
            std::string::npos);
}

}  // namespace
}  // namespace ptrain::submit
