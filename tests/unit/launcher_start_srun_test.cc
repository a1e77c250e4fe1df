#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

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
  EXPECT_EQ(srun.report("srun: error: task 3 launch failed: Unspecified error\n"
                        "srun: error: node2: tasks 4-5: Killed\n"),
            (LauncherReport{3, 0, 10, {}, "srun: task 3 launch failed: Unspecified error"}));
  for (const char* text : {"", "srun: error: Unable to allocate resources", "srun: error: a: task",
                           "srun: error: node2: task x: Killed", "srun: error: n: tasks"})
    EXPECT_EQ(srun.report(text), LauncherReport{}) << text;
}

// Of 22.05.8 too: nodes that Slurm has given up, and nodes without their slurmd.
TEST(Srun, ReadsWhichNodesAreLost) {
  const Srun srun("/usr/bin/srun", {"node2", 4, true});
  const auto report = [&](const char* text) { return srun.report(text); };
  EXPECT_EQ(report("srun: error: node1: task 0: Terminated\nsrun: error: Node failure on node2\n"),
            (LauncherReport{-1, 0, 0, {"node2"}, "srun: error: Node failure on node2"}));
  EXPECT_EQ(
      report("srun: error: slurm_receive_msgs: [[node2]:6818] failed: Zero Bytes were "
             "transmitted or received\n"
             "srun: error: Task launch for StepId=1.0 failed on node node2: Zero Bytes were "
             "transmitted or received\n"
             "srun: error: Task launch for StepId=1.0 failed on node node4: Communication "
             "connection failure\n"
             "srun: error: Application launch failed: Zero Bytes were transmitted or received\n"
             "srun: error: node1: task 0: Killed\n"),
      (LauncherReport{-1,
                      0,
                      0,
                      {"node2", "node4"},
                      "srun: error: Task launch for StepId=1.0 failed on node node2: Zero "
                      "Bytes were transmitted or received"}));
  EXPECT_EQ(report("srun: error: Node failure on node[2-3]\nsrun: error: Node failure on node3")
                .lost_nodes,
            (std::vector<std::string>{"node2", "node3"}));
}

TEST(Srun, SeesAllGpusOfANode) {
  Launch launch{"/bin/ptrain", "/r", "t", 4, 1, 2};
  const auto binds = [&](bool known) {
    Srun::Traits traits{"node2", 4};
    traits.gpu_bind = known;
    const auto words = Srun("/bin/srun", traits).command(launch).arguments;
    return std::ranges::count(words, "--gpu-bind=none");
  };
  EXPECT_EQ(binds(true), 0);
  launch.on_gpus = true;
  EXPECT_EQ(binds(true), 1);
  EXPECT_EQ(binds(false), 0);
}

TEST(Srun, TellsOfWantOfMemory) {
  LauncherReport killed{1, SIGKILL};
  killed.out_of_memory = true;
  EXPECT_EQ(Srun("/bin/srun", {"node2", 4}).report("srun: error: node2: task 1: Out Of Memory\n"),
            killed);
}

}  // namespace
}  // namespace ptrain::start
