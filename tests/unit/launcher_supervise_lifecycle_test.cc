#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <signal.h>

#include "tests/support/lifecycle_script.h"

namespace ptrain::supervise {
namespace {

TEST(Lifecycle, AllGoodbyesMakeSuccess) {
  Script script;
  script.hello().step(9).goodbye(0, ExitCode::kDone).goodbye(1, ExitCode::kDone).ended(0);
  EXPECT_EQ(script.verdict().code, ExitCode::kDone);
  EXPECT_EQ(script.verdict().step, 9);
  EXPECT_EQ(script.num_kills, 0);
}

TEST(Lifecycle, ALauncherThatReturnsZeroIsNotBelieved) {
  Script script;
  script.hello().goodbye(0, ExitCode::kDone).ended(0);
  EXPECT_EQ(script.verdict().code, ExitCode::kRankError);
  EXPECT_EQ(script.verdict().rank, 1);
}

TEST(Lifecycle, TheNextShapeIsCarried) {
  Script script;
  script.hello().goodbye(0, ExitCode::kDone, "long").goodbye(1, ExitCode::kDone).ended(0);
  EXPECT_EQ(script.lifecycle().next_shape(), "long");
}

TEST(Lifecycle, ASignalIsNamed) {
  Script script;
  script.hello().gone(1).goodbye(0, ExitCode::kRankError).ended(137, {1, SIGSEGV, 0});
  EXPECT_EQ(script.verdict().code, ExitCode::kRankSignal);
  EXPECT_EQ(script.verdict().rank, 1);
  EXPECT_EQ(script.verdict().signal, SIGSEGV);
}

TEST(Lifecycle, APeerThatComplainsFirstIsNotTheCause) {
  Script script;
  script.hello().goodbye(0, ExitCode::kRankError).gone(1).ended(137, {1, SIGKILL, 0});
  EXPECT_EQ(script.verdict().code, ExitCode::kRankSignal);
  EXPECT_EQ(script.verdict().rank, 1);
}

TEST(Lifecycle, ALostNodeIsTheCauseOfItsPeersComplaints) {
  Script script;
  script.hello().goodbye(0, ExitCode::kRankError).ended(143, {-1, 0, 0, {"node2"}, "srun said so"});
  EXPECT_EQ(script.verdict().code, ExitCode::kNodeLost);
  EXPECT_EQ(script.verdict().reason, "the node node2 is lost (srun said so)");
}

TEST(Lifecycle, AMachineThatDoesNotAnswerIsALostNode) {
  Script script(6);
  script.hello().at(100).unreachable(3).at(100.9).tick();
  EXPECT_EQ(script.num_kills, 0);  // others may have gone with it
  script.unreachable(2).at(101.1).tick();
  EXPECT_EQ(script.num_kills, 1);
  script.at(101.7).tick();  // srun waits for the lost node
  EXPECT_EQ(script.num_kills, 2);
  script.ended(143, {0, SIGKILL, 0});  // Slurm's own words on those that we killed
  EXPECT_EQ(script.verdict().code, ExitCode::kNodeLost);
  EXPECT_EQ(script.verdict().reason, "the node node1 does not answer any more");
  EXPECT_EQ(script.verdict().nodes, std::vector<std::string>{"node1"});
}

TEST(Lifecycle, NodesThatAreLostTogetherAreNamedTogether) {
  Script script(6);
  script.hello().at(100).goodbye(0, ExitCode::kRankError).at(100.5).unreachable(2);
  script.at(101).unreachable(4).at(102).tick();
  EXPECT_EQ(script.num_kills, 1);
  script.ended(143, {0, SIGKILL, 0});
  EXPECT_EQ(script.verdict().reason, "the nodes node1, node2 do not answer any more");
  EXPECT_EQ(script.verdict().nodes, (std::vector<std::string>{"node1", "node2"}));
}

TEST(Lifecycle, TheNodeOfTheRankThatFailedIsToldOfToo) {
  Script script(4);
  script.hello().gone(3).ended(137, {3, SIGKILL, 0});
  EXPECT_EQ(script.verdict().nodes, std::vector<std::string>{"node1"});
}

TEST(Lifecycle, ARanksOwnWordStandsWhenItAbortsAfterwards) {
  Script script;
  script.hello().goodbye(1, ExitCode::kRankError).ended(134, {1, SIGABRT, 0});
  EXPECT_EQ(script.verdict().code, ExitCode::kRankError);
  EXPECT_EQ(script.verdict().reason, "rank 1: because");
}

TEST(Lifecycle, ADeathBeforeHelloIsNamedByTheLauncher) {
  Script script;
  script.ended(3, {1, 0, 3});
  EXPECT_EQ(script.verdict().code, ExitCode::kEnvironment);
  EXPECT_EQ(script.verdict().rank, 1);
}

TEST(Lifecycle, OutOfMemoryNeedsEvidence) {
  Script with, without, other;
  with.hello().gone(0).ended(137, {0, SIGKILL, 0}, "here");
  EXPECT_EQ(with.verdict().code, ExitCode::kOutOfMemory);
  without.hello().gone(0).ended(137, {0, SIGKILL, 0}, "");
  EXPECT_EQ(without.verdict().code, ExitCode::kRankSignal);
  other.hello().gone(0).ended(139, {0, SIGSEGV, 0}, "here");
  EXPECT_EQ(other.verdict().code, ExitCode::kRankSignal);
}

TEST(Lifecycle, AnExitCodeOfOursIsKeptAndOthersAreRankErrors) {
  Script ours, foreign;
  ours.hello().gone(1).ended(15, {1, 0, 15});
  EXPECT_EQ(ours.verdict().code, ExitCode::kUnusable);
  foreign.hello().gone(1).ended(137, {1, 0, 137});  // exit(137) is no proof of SIGKILL
  EXPECT_EQ(foreign.verdict().code, ExitCode::kRankError);
  EXPECT_EQ(foreign.verdict().signal, 0);
}

TEST(Lifecycle, ALauncherThatDoesNotReactIsEndedInUnderFiveSeconds) {
  Script script;
  script.hello().at(100).gone(1).at(102).tick();
  EXPECT_EQ(script.num_kills, 0);
  script.at(102.6).tick();
  EXPECT_EQ(script.num_kills, 1);
  script.at(104.7).tick();  // mpirun itself did not end
  EXPECT_EQ(script.num_kills, 2);
  script.ended(137, {0, SIGKILL, 0});  // the rank that we killed is not the cause
  EXPECT_EQ(script.verdict().rank, 1);
}

TEST(Lifecycle, AKilledLauncherIsNamed) {
  Script script;
  script.hello().feed(LauncherEnded{{0, SIGKILL}, {}, ""});
  EXPECT_EQ(script.verdict().code, ExitCode::kRankSignal);
  EXPECT_EQ(script.verdict().rank, -1);
}

TEST(Lifecycle, TheLaggardOfAHangIsNamed) {
  Script script(3, 10);
  script.hello().at(1).step(4);
  for (double now = 2; now <= 12; ++now) {
    script.at(now).beat(0, 4, "step", "dp all_gather#9", true);
    script.beat(1, 4, "step", "dp all_gather#8").beat(2, 4, "step", "dp all_gather#9", true);
    script.tick();
  }
  EXPECT_EQ(script.num_kills, 0);  // phases changed at 2
  script.at(12.1).tick();
  EXPECT_EQ(script.num_kills, 0);
  EXPECT_EQ(script.num_asked, 1);  // first they say where they are
  script.at(13.2).tick();
  EXPECT_EQ(script.num_kills, 1);
  EXPECT_EQ(script.num_asked, 1);
  script.ended(137, {0, SIGKILL, 0});
  EXPECT_EQ(script.verdict().code, ExitCode::kHang);
  EXPECT_EQ(script.verdict().rank, 1);
  EXPECT_EQ(script.verdict().reason,
            "rank 1: no progress for 10 s (step 4, step, last collective dp all_gather#8); "
            "ranks 0, 2 wait in dp all_gather#9");
}

TEST(Lifecycle, SlowPhasesGetFiveTimesTheLimit) {
  Script first(2, 10), validation(2, 10);
  first.hello().at(49).tick();  // before the first step
  EXPECT_EQ(first.num_kills, 0);
  first.at(51).tick().at(52.1).tick();
  EXPECT_EQ(first.num_kills, 1);
  validation.hello().at(1).step(1).beat(0, 1, "validation").at(50).tick();
  EXPECT_EQ(validation.num_kills, 0);
}

TEST(Lifecycle, RanksThatAllPartedWellAreBelievedWhateverTheirExitCodes) {
  Script script;
  script.hello().step(1).interrupt();
  script.goodbye(0, ExitCode::kStopped).goodbye(1, ExitCode::kStopped);
  script.ended(20, {1, 0, 20});
  EXPECT_EQ(script.verdict().code, ExitCode::kStopped);
}

TEST(Lifecycle, ALostFolderEndsTheRun) {
  Script script;
  script.hello().step(9).feed(FolderLost{"it is gone"});
  EXPECT_EQ(script.num_kills, 1);
  script.gone(0).gone(1).ended(137, {0, SIGKILL, 0});
  EXPECT_EQ(script.verdict().code, ExitCode::kUnusable);
  EXPECT_EQ(script.verdict().reason, "it is gone");
  EXPECT_EQ(script.verdict().step, 9);
}

// Whatever comes in whatever order: the machine never ends before its launcher, and a rank that did
// not say goodbye is never called success.
RC_GTEST_PROP(Lifecycle, NoOrderOfMessagesFakesSuccess, (const std::vector<std::uint8_t>& moves)) {
  Script script;
  bool said[2] = {false, false};
  double now = 0;
  for (const auto move : moves) {
    const int rank = move & 1;
    script.at(now += 0.1);
    switch (move / 2 % 7) {
      case 0:
        script.hello();
        break;
      case 1:
        script.step(move);
        break;
      case 2:
        script.gone(rank);
        break;
      case 3:
        script.goodbye(rank, ExitCode::kDone);
        said[rank] = true;
        break;
      case 4:
        script.beat(rank, move, "step");
        break;
      case 5:
        script.tick();
        break;
      case 6:
        script.goodbye(rank, ExitCode::kRankError);
        said[rank] = false;
        break;
    }
    RC_ASSERT(!script.lifecycle().ended());
  }
  script.ended(0);
  RC_ASSERT(script.lifecycle().ended());
  if (script.verdict().code == ExitCode::kDone) RC_ASSERT(said[0] && said[1]);
}

}  // namespace
}  // namespace ptrain::supervise
