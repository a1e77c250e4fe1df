#include <gtest/gtest.h>

#include "launcher/start/srun.h"

namespace ptrain::start {
namespace {

TEST(Srun, CommandLine) {
  const Srun srun("/usr/bin/srun", {"node2", 14, true});
  const auto command = srun.command({"/opt/ptrain", "/r/a b.json", "secret", 8, 3, 2});
  EXPECT_EQ(
      base::to_text(command, "PTRAIN_CONTROL_TOKEN"),
      "SLURM_PMIX_FENCE=ring OMP_NUM_THREADS=3 OMP_WAIT_POLICY=passive "
      "PTRAIN_CONTROL_TOKEN=... /usr/bin/srun --mpi=pmix --kill-on-bad-exit=1 --nodes=2 "
      "--ntasks=8 --ntasks-per-node=4 --cpus-per-task=3 --distribution=block:block --export=ALL "
      "--input=none /opt/ptrain worker --request '/r/a b.json'");
}

TEST(Srun, MoreRanksThanCpusWaitWithoutSpinning) {
  const auto text = base::to_text(Srun("/s", {"n", 3, true}).command({"/p", "/r", "", 8, 1, 2}));
  EXPECT_NE(text.find("OMPI_MCA_mpi_yield_when_idle=1 /s --mpi=pmix"), std::string::npos);
  EXPECT_NE(text.find(" --overcommit "), std::string::npos);
  EXPECT_NE(text.find("--cpus-per-task=1 "), std::string::npos);
}

TEST(Srun, NamesTheNodesAndSharesCpusWithStepsThatHang) {
  const Srun srun("/s", {"node4", 4, true, true});
  const auto text = base::to_text(srun.command({"/p", "/r", "", 4, 1, 2, {"node1", "node3"}}));
  EXPECT_NE(text.find(" --nodelist=node1,node3 --overlap --export=ALL "), std::string::npos);
}

// An older srun lacks options: what its help does not have is left out.
TEST(Srun, BindsRanksToCoresWhereItCan) {
  EXPECT_TRUE(knows_option("      --cpu-bind=             Bind tasks to CPUs", "--cpu-bind"));
  EXPECT_FALSE(knows_option("  -O, --overcommit  overcommit resources", "--cpu-bind"));
  const Srun srun("/s", {"n", 4, true, false, true});
  EXPECT_NE(base::to_text(srun.command({"/p", "/r", "", 4, 1, 2})).find(" --cpu-bind=cores "),
            std::string::npos);
  // More ranks than cores have none to be bound to.
  EXPECT_EQ(base::to_text(srun.command({"/p", "/r", "", 16, 1, 2})).find("--cpu-bind"),
            std::string::npos);
}

TEST(Srun, NoSingleCopyWhereItIsForbidden) {
  const auto text = base::to_text(Srun("/s", {"n", 1, false}).command({"/p", "/r", "", 1, 1, 1}));
  EXPECT_NE(text.find("OMPI_MCA_btl_vader_single_copy_mechanism=none"), std::string::npos);
  EXPECT_NE(text.find("OMPI_MCA_btl_sm_single_copy_mechanism=none"), std::string::npos);
}

// The texts are those of Slurm 22.05.8, of steps whose task 1 ended first.
TEST(Srun, ReadsWhoDiedFirst) {
  const Srun srun("/usr/bin/srun", {"node2", 4, true});
  EXPECT_EQ(srun.report("srun: error: node1: task 1: Killed\n"
                        "slurmstepd-node1: error: *** STEP 3.0 ON node1 CANCELLED AT ... ***\n"
                        "srun: error: node1: task 0: Terminated\n"
                        "srun: error: node2: tasks 2-3: Terminated\n"),
            (LauncherReport{1, 9, 0}));
  EXPECT_EQ(srun.report("Terminated\nsrun: error: node1: task 1: Segmentation fault (core dumped)"),
            (LauncherReport{1, 11, 0}));
  EXPECT_EQ(srun.report("srun: error: node1: task 12: Exited with exit code 3\n"
                        "srun: error: node1: task 0: Exited with exit code 143\n"),
            (LauncherReport{12, 0, 3}));
  EXPECT_EQ(srun.report("srun: error: node2: tasks 2-3: Terminated"), (LauncherReport{2, 15, 0}));
  EXPECT_EQ(srun.report("srun: error: node1: task 0: Terminated\n"
                        "srun: error: Node failure on node2\n"),
            (LauncherReport{-1, 0, 0, "node2"}));
  EXPECT_EQ(srun.report("srun: error: task 3 launch failed: Unspecified error\n"
                        "srun: error: node2: tasks 4-5: Killed\n"),
            (LauncherReport{3, 0, 10, "", "srun: task 3 launch failed: Unspecified error"}));
  for (const char* text : {"", "srun: error: Unable to allocate resources", "srun: error: a: task",
                           "srun: error: node2: task x: Killed", "srun: error: n: tasks"})
    EXPECT_EQ(srun.report(text), LauncherReport{}) << text;
}

TEST(Srun, TheWayToANode) {
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
  const auto none = address_towards("no-such-node.invalid");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ExitCode::kEnvironment);
}

}  // namespace
}  // namespace ptrain::start
