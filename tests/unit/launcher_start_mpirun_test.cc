#include <gtest/gtest.h>

#include "launcher/start/mpirun.h"

namespace ptrain::start {
namespace {

TEST(Mpirun, CommandLine) {
  const Mpirun mpirun("/usr/bin/mpirun", {4, true, true});
  const auto command = mpirun.command({"/opt/ptrain", "/r/a b.json", "secret", 4, 2});
  EXPECT_EQ(base::to_text(command, "PTRAIN_CONTROL_TOKEN"),
            "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive PTRAIN_CONTROL_TOKEN=... "
            "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
            "/usr/bin/mpirun -np 4 --oversubscribe --bind-to none "
            "--mca pml ob1 --mca btl self,vader --mca plm isolated "
            "/opt/ptrain worker --request '/r/a b.json'");
}

TEST(Mpirun, FlagsOnlyWhereTheyAreNeeded) {
  const Mpirun mpirun("/usr/bin/mpirun", {4, false, false});
  const auto text = base::to_text(mpirun.command({"/p", "/r", "", 1, 1}));
  EXPECT_NE(text.find("--mca btl_vader_single_copy_mechanism none"), std::string::npos);
  EXPECT_EQ(text.find("ALLOW_RUN_AS_ROOT"), std::string::npos);
}

// The launchers and the shared memory of version 5 have other names.
TEST(Mpirun, Version5) {
  const Mpirun mpirun("/usr/bin/mpirun", {5, false, false});
  const auto text = base::to_text(mpirun.command({"/p", "/r", "", 1, 1}));
  EXPECT_NE(text.find("--mca btl self,sm --mca btl_sm_single_copy_mechanism none /p"),
            std::string::npos);
}

TEST(Mpirun, OnTheNodesOfAJob) {
  const Mpirun mpirun("/m", {4, true, true, "127.0.0.1"});
  EXPECT_EQ(base::to_text(mpirun.command({"/p", "/r", "secret", 4, 2, 2, {"n1", "n3"}}),
                          "PTRAIN_CONTROL_TOKEN"),
            "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive PTRAIN_CONTROL_TOKEN=... SLURM_OVERLAP=1 "
            "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
            "/m -np 4 --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader,tcp "
            "--host n1:2,n3:2 --map-by slot -x OMP_NUM_THREADS -x OMP_WAIT_POLICY "
            "-x PTRAIN_CONTROL_TOKEN /p worker --request /r");
  EXPECT_EQ(mpirun.control_host(), "127.0.0.1");
  EXPECT_TRUE(mpirun.kills_on_term());
}

TEST(Mpirun, OpensTheContainerOfEachRank) {
  start::Launch launch{"/p", "/r", "", 1, 1};
  launch.inside = {"apptainer", "exec", "a.sif"};
  EXPECT_NE(base::to_text(Mpirun("/m", {}).command(launch)).find(" apptainer exec a.sif /p worker"),
            std::string::npos);
}

// The texts are those of Open MPI 4.1.4.
TEST(Mpirun, ReadsWhoDiedFirst) {
  const Mpirun mpirun("/usr/bin/mpirun", {4, false, true});
  EXPECT_EQ(mpirun.report("mpirun noticed that process rank 1 with PID 0 on node vm exited on "
                          "signal 9 (Killed).\n"),
            (LauncherReport{1, 9, 0}));
  EXPECT_EQ(mpirun.report("the job to be terminated. The first process to do so was:\n\n"
                          "  Process name: [[29310,1],12]\n  Exit code:    3\n"),
            (LauncherReport{12, 0, 3}));
  // The srun that starts its daemons.
  EXPECT_EQ(
      mpirun.report("srun: error: Task launch for StepId=1.1 failed on node node2: x\n").lost_nodes,
      std::vector<std::string>{"node2"});
  EXPECT_EQ(mpirun.report(""), LauncherReport{});
  EXPECT_EQ(mpirun.report("mpirun noticed that process rank "), (LauncherReport{-1, 0, 0}));
}

TEST(Mpirun, OtherMpisAreRefused) {
  EXPECT_EQ(mpirun_version("mpirun (Open MPI) 4.1.4\n", "m"), 4);
  EXPECT_EQ(mpirun_version("mpirun (Open MPI) 5.0.3\n", "m"), 5);
  for (const char* text : {"mpirun (Open MPI) 4.0.7\n", "mpirun (Open MPI) 3.1.0",
                           "HYDRA build details:\n    Version: 4.1\n", ""}) {
    const auto status = mpirun_version(text, "m");
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code, ExitCode::kEnvironment);
    EXPECT_NE(status.error().hint.find("install"), std::string::npos);
  }
}

}  // namespace
}  // namespace ptrain::start
