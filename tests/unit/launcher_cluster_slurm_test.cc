#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ptrain::cluster
