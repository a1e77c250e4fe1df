// Stops that a user or Slurm asks for.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/lifecycle_script.h"

namespace ptrain::supervise {
namespace {

TEST(Lifecycle, StopsInTwoStages) {
  Script script;
  script.hello().step(1).interrupt();
  ASSERT_EQ(script.stops.size(), 1u);
  EXPECT_EQ(script.stops[0].rank, -1);
  EXPECT_TRUE(script.stops[0].stop.checkpoint);
  EXPECT_EQ(script.num_kills, 0);
  script.interrupt();
  EXPECT_EQ(script.num_kills, 1);
  script.gone(0).gone(1).ended(137, {0, SIGKILL, 0});
  EXPECT_EQ(static_cast<int>(script.verdict().code), 128 + SIGINT);
}

// The first stop may have been obeyed by then: whether there is a checkpoint is not said here.
TEST(Lifecycle, TheSecondStopIsTheOneThatEnded) {
  Script script;
  script.hello().step(1).interrupt().feed(StopAsked{"signal HUP", SIGHUP, false});
  script.gone(0).gone(1).ended(137, {0, SIGKILL, 0});
  EXPECT_EQ(static_cast<int>(script.verdict().code), 128 + SIGHUP);
  EXPECT_EQ(script.verdict().reason, "stopped at once (signal HUP)");
}

TEST(Lifecycle, AStopAtOnceAsksForNoCheckpoint) {
  Script script;
  script.hello().step(1).feed(StopAsked{"signal TERM", SIGTERM, false, true});
  EXPECT_TRUE(script.stops.empty());
  EXPECT_EQ(script.num_kills, 1);
  script.gone(0).gone(1).ended(137, {0, SIGKILL, 0});
  EXPECT_EQ(static_cast<int>(script.verdict().code), 128 + SIGTERM);
}

TEST(Lifecycle, AStopThatIsObeyedEndsWithItsCode) {
  Script script;
  script.hello().step(1).interrupt();
  script.goodbye(0, ExitCode::kStopped).goodbye(1, ExitCode::kStopped).ended(0);
  EXPECT_EQ(script.verdict().code, ExitCode::kStopped);
}

// Before the ranks are there, while they read data: nothing is to be saved, so nothing waits.
TEST(Lifecycle, AStopDuringTheStartIsAtOnce) {
  Script none, starting;
  none.interrupt();
  EXPECT_EQ(none.num_kills, 1);
  none.hello();
  EXPECT_EQ(none.num_kills, 3) << "ranks that came after it are not left to train";
  none.ended(137, {0, SIGKILL, 0});
  EXPECT_EQ(none.verdict().code, ExitCode::kStopped);
  starting.hello().beat(0, 0, "starting").beat(1, 0, "starting").interrupt();
  EXPECT_EQ(starting.num_kills, 1);
  EXPECT_TRUE(starting.stops.empty());
  starting.gone(0).gone(1).ended(137, {0, SIGKILL, 0});
  EXPECT_EQ(starting.verdict().code, ExitCode::kStopped);
  EXPECT_EQ(starting.verdict().reason,
            "stopped on request (signal INT) while it started: there was nothing new to save");
}

TEST(Lifecycle, AStopWaitsForTheStepOnceTrainingHasBegun) {
  const run::EventMessage started{run::EventKind::kShapeStarted, {}};
  Script by_event, by_phase;
  by_event.hello().feed(RankSaid{0, started}).interrupt();
  by_phase.hello().beat(1, 0, "step").interrupt();
  for (const Script* script : {&by_event, &by_phase}) {
    EXPECT_EQ(script->num_kills, 0);
    EXPECT_EQ(script->stops.size(), 1u);
  }
}

// scancel reaches ranks, supervisor and often srun within milliseconds, in any order.
TEST(Lifecycle, RanksThatSlurmKillsAreNotToBlame) {
  const StopAsked by_slurm{"signal TERM", SIGTERM, true};
  Script before, after;
  before.hello().step(9).feed(by_slurm).at(0.1).gone(0).gone(1).ended(143, {0, SIGKILL, 0});
  after.hello().step(9).gone(0).at(0.1).feed(by_slurm).gone(1).ended(143, {0, SIGKILL, 0});
  for (const Script* script : {&before, &after}) {
    EXPECT_EQ(static_cast<int>(script->verdict().code), 128 + SIGTERM);
    EXPECT_EQ(script->verdict().rank, -1);
    EXPECT_EQ(script->verdict().step, 9);
  }
}

TEST(Lifecycle, ASaveThatSlurmLeavesTimeForIsAPreemption) {
  Script script;
  script.hello().step(9).feed(StopAsked{"time is up", 0, true});
  script.feed(StopAsked{"signal TERM", SIGTERM, true});  // it does not hurry us
  EXPECT_EQ(script.num_kills, 0);
  script.goodbye(0, ExitCode::kStopped).goodbye(1, ExitCode::kStopped).ended(0);
  EXPECT_EQ(script.verdict().code, ExitCode::kPreempted);
  EXPECT_EQ(script.verdict().reason, "stopped on request (time is up), checkpoint written");
}

// `ptrain stop --now` sends USR2 and TERM.
TEST(Lifecycle, AStopOfTheUsersIsHurriedByTermInAJobToo) {
  Script script;
  script.hello().step(9).feed(StopAsked{"signal USR2", SIGUSR2, false});
  script.feed(StopAsked{"signal TERM", SIGTERM, true});
  EXPECT_EQ(script.num_kills, 1);
  script.gone(0).gone(1).ended(137, {0, SIGKILL, 0});
  EXPECT_EQ(static_cast<int>(script.verdict().code), 128 + SIGTERM);
}

TEST(Lifecycle, AShapeThatEndsWhileStoppingDoesNotStartTheNext) {
  Script script;
  script.hello().step(1).interrupt().goodbye(0, ExitCode::kDone, "long");
  script.goodbye(1, ExitCode::kDone, "long").ended(0);
  EXPECT_EQ(script.verdict().code, ExitCode::kStopped);
  EXPECT_EQ(script.lifecycle().next_shape(), "");
}

}  // namespace
}  // namespace ptrain::supervise
