#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <signal.h>

#include "launcher/supervise/lifecycle.h"

namespace ptrain::supervise {
namespace {

// A lifecycle of `num_ranks` ranks with a clock moved by hand; what it asked for is counted.
class Script {
 public:
  explicit Script(int num_ranks = 2, double hang_s = 10)
      : num_ranks_(num_ranks), lifecycle_(1, nodes_of(num_ranks), hang_s, 0) {}

  Script& at(double now) {
    now_ = now;
    return *this;
  }

  Script& feed(const Input& input) {
    for (const auto& output : lifecycle_.on(now_, input)) {
      if (std::holds_alternative<KillAll>(output)) ++num_kills;
      if (std::holds_alternative<AskStacks>(output)) ++num_asked;
      if (const auto* stop = std::get_if<SendStop>(&output)) stops.push_back(*stop);
      if (const auto* record = std::get_if<Record>(&output)) records.push_back(*record);
    }
    return *this;
  }

  Script& hello() {
    for (int rank = 0; rank < num_ranks_; ++rank)
      feed(RankSaid{rank, run::Hello{"t", 1, rank, 100 + rank, "h", "b"}});
    return *this;
  }
  Script& step(std::int64_t step, double seconds = 1) {
    run::StepDone done{step, "s"};
    done.step_s = seconds;
    return feed(RankSaid{0, done});
  }
  Script& beat(int rank, std::int64_t step, std::string phase, std::string collective = "",
               bool waiting = false) {
    return feed(
        RankSaid{rank, run::Heartbeat{step, std::move(phase), std::move(collective), waiting, 0}});
  }
  Script& goodbye(int rank, ExitCode code, std::string next = "") {
    feed(RankSaid{rank, run::Goodbye{code, "because", std::move(next)}});
    return feed(RankGone{rank});
  }
  Script& unreachable(int rank) { return feed(RankGone{rank, true}); }
  Script& gone(int rank) { return feed(RankGone{rank}); }
  Script& ended(int code, start::LauncherReport report = {}, std::string out_of_memory = "") {
    return feed(LauncherEnded{{code, 0}, report, out_of_memory});
  }
  Script& interrupt() { return feed(StopAsked{"signal INT", SIGINT, false}); }
  Script& tick() { return feed(Tick{}); }

  const run::Verdict& verdict() const {
    EXPECT_TRUE(lifecycle_.ended());
    return lifecycle_.verdict();
  }
  const Lifecycle& lifecycle() const { return lifecycle_; }

  int num_kills = 0, num_asked = 0;
  std::vector<SendStop> stops;
  std::vector<Record> records;

 private:
  // "node0", "node0", "node1" ...
  static std::vector<std::string> nodes_of(int num_ranks) {
    std::vector<std::string> nodes;
    for (int rank = 0; rank < num_ranks; ++rank) nodes.push_back("node" + std::to_string(rank / 2));
    return nodes;
  }

  int num_ranks_;
  double now_ = 0;
  Lifecycle lifecycle_;
};

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

TEST(Lifecycle, ALostFolderEndsTheRun) {
  Script script;
  script.hello().step(9).feed(FolderLost{"it is gone"});
  EXPECT_EQ(script.num_kills, 1);
  script.gone(0).gone(1).ended(137, {0, SIGKILL, 0});
  EXPECT_EQ(script.verdict().code, ExitCode::kUnusable);
  EXPECT_EQ(script.verdict().reason, "it is gone");
  EXPECT_EQ(script.verdict().step, 9);
}

TEST(Lifecycle, AShapeThatEndsWhileStoppingDoesNotStartTheNext) {
  Script script;
  script.hello().step(1).interrupt().goodbye(0, ExitCode::kDone, "long");
  script.goodbye(1, ExitCode::kDone, "long").ended(0);
  EXPECT_EQ(script.verdict().code, ExitCode::kStopped);
  EXPECT_EQ(script.lifecycle().next_shape(), "");
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
