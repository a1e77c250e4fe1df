#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launcher/cluster/slurm.h"

namespace ptrain::cluster {
namespace {

// Texts as Slurm 22.05 gives them.
TEST(Slurm, CpusOfNodes) {
  EXPECT_EQ(cpus_of_nodes("4"), (std::vector{4}));
  EXPECT_EQ(cpus_of_nodes("1(x2)"), (std::vector{1, 1}));
  EXPECT_EQ(cpus_of_nodes("4(x2),8,72(x3)"), (std::vector{4, 4, 8, 72, 72, 72}));
  for (const char* text : {"", ",", "x", "4(x0)", "0", "4(x", "-1(x2)"}) {
    const auto found = cpus_of_nodes(text);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().code, ExitCode::kEnvironment);
  }
}

TEST(Slurm, NodeFacts) {
  EXPECT_EQ(node_facts("NodeName=node1 Arch=x86_64 CoresPerSocket=4  CPUAlloc=1 CPUTot=8 OS=Linux "
                       "6.18 #1 SMP  RealMemory=191845 AllocMem=0 Sockets=1 ThreadsPerCore=2 "),
            (NodeFacts{"node1", 2, std::int64_t{191845} << 20}));
  EXPECT_EQ(node_facts("NodeName=a RealMemory=1 ThreadsPerCore=1"), (NodeFacts{"a", 1, 0}));
  EXPECT_EQ(node_facts("slurm_load_node error"), NodeFacts{});
}

// By the number of an array Slurm's commands mean all of its tasks; one of them has that number,
// too.
TEST(Slurm, ATaskWithTheNumberOfItsArrayIsNamedAsATask) {
  const auto job_with = [](const char* array) {
    ::setenv("SLURM_JOB_ID", "7", 1);
    ::setenv("SLURM_ARRAY_JOB_ID", array, 1);
    ::setenv("SLURM_ARRAY_TASK_ID", "2", 1);
    const Allocation here = find_allocation();
    EXPECT_EQ(here.array, array);
    EXPECT_EQ(here.task, "2");
    for (const char* name : {"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"})
      ::unsetenv(name);
    return here.job;
  };
  EXPECT_EQ(job_with("7"), "7_2");
  EXPECT_EQ(job_with("6"), "7");  // of its own, or of the job that submitted this one
}

// With a scontrol of ours, or none, in PATH.
class Scontrol : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ptrain-slurm-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = std::getenv("PATH");
    ::setenv("PATH", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  void install(const std::string& script) const {
    const std::string tool = folder_ + "/scontrol";
    std::ofstream(tool) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  }
  std::string folder_, path_;
  const Allocation two_{"7", "node[1-2]", 2, "8(x2)", "", "", false, 0};
};

TEST_F(Scontrol, TellsOfNodes) {
  install(
      "echo 'NodeName=node1 RealMemory=2048 ThreadsPerCore=2'; echo 'NodeName=node2 "
      "RealMemory=1024'");
  const auto cluster = allocated_cluster(two_);
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->nodes[0], (Node{"node1", 4, std::int64_t{2} << 30}));
  EXPECT_EQ(cluster->nodes[1], (Node{"node2", 8, std::int64_t{1} << 30}));
}

TEST_F(Scontrol, IsDoneWithoutWhereThereIsNone) {
  const auto cluster = allocated_cluster(two_);
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->nodes[1].num_cores, 8);
  EXPECT_GT(cluster->nodes[1].memory_bytes, 0);
}

TEST_F(Scontrol, ThatFailsIsNotTakenForNone) {
  install("echo 'slurm_load_node error: Unable to contact slurm controller' >&2; exit 1");
  const auto cluster = allocated_cluster(two_);
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().code, ExitCode::kEnvironment);
  EXPECT_EQ(cluster.error().message,
            "Slurm does not tell of the nodes of this job: scontrol: slurm_load_node error: Unable "
            "to contact slurm controller");
}

// As Slurm 22.05 writes of a job that lost node1, and of one that waits to be started again.
TEST(Slurm, TellsWhichNodesAJobStillHas) {
  EXPECT_EQ(job_in("JobId=4 JobName=a JobState=RUNNING Reason=None ReqNodeList=(null) "
                   "NodeList=node[2-4] BatchHost=node1 NumNodes=3\n"),
            (JobNow{"RUNNING", {"node2", "node3", "node4"}}));
  EXPECT_EQ(
      job_in("JobId=4 JobName=a JobState=PENDING Reason=BeginTime NodeList=(null) NumNodes=4\n"),
      (JobNow{"PENDING", {}}));
}

TEST(Slurm, NodesAreTakenOnlyWhereItTellsWhichAreLeft) {
  using Nodes = std::vector<std::string>;
  const Nodes nodes{"node1", "node2", "node3"};
  EXPECT_EQ(taken_nodes({"RUNNING", {"node1", "node3"}}, nodes), Nodes{"node2"});
  EXPECT_EQ(taken_nodes({"RUNNING", nodes}, nodes), Nodes{});
  EXPECT_EQ(taken_nodes({"RUNNING", {}}, nodes), Nodes{});
  EXPECT_EQ(taken_nodes({"COMPLETING", {"node1"}}, nodes), Nodes{});
}

}  // namespace
}  // namespace ptrain::cluster
