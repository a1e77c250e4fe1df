#include <gtest/gtest.h>
#include <signal.h>

#include "launcher/supervise/verdicts.h"

namespace ptrain::supervise {
namespace {

constexpr const char* kResume = "`ptrain resume r`";

run::Verdict killed() {
  run::Verdict verdict;
  verdict.code = ExitCode::kRankSignal;
  verdict.reason = "rank 1: killed by signal 9 (Killed)";
  verdict.rank = 1;
  verdict.step = 7;
  verdict.nodes = {"b"};
  return verdict;
}

TEST(SilentNodes, AreSpokenOfAsOneOrAsSeveral) {
  EXPECT_EQ(left_out_text({"a"}), "a: does not answer, and is left out");
  EXPECT_EQ(left_out_text({"a", "b"}), "a, b: do not answer, and are left out");
  const Status one = silent_nodes_error({"a"}, "");
  EXPECT_EQ(one.error().code, ExitCode::kEnvironment);
  EXPECT_EQ(one.error().message, "preflight: a: does not answer");
  EXPECT_EQ(one.error().hint, "leave a out: --exclude=a; `ptrain doctor` looks again");
  const Status two = silent_nodes_error({"a", "b"}, "nothing fits");
  EXPECT_EQ(two.error().message, "preflight: a, b: do not answer; nothing fits");
  EXPECT_EQ(two.error().hint, "leave a, b out: --exclude=a,b; `ptrain doctor` looks again");
}

TEST(SilentNodes, AreExcludedFromTheFirstAttempt) {
  const Decision decision = start_without_decision({"a", "b"});
  EXPECT_EQ(decision.action, AfterAttempt::kRestart);
  EXPECT_EQ(decision.code, ExitCode::kNodeLost);
  EXPECT_EQ(decision.next, "the first attempt starts without a, b");
  EXPECT_EQ(decision.exclude, (Nodes{"a", "b"}));
}

TEST(OwnVerdicts, RanksThatCouldNotBeStartedLeaveTheErrorAndAWayOn) {
  const Error error{ExitCode::kEnvironment, "no srun", "load a module", {}};
  const auto verdict = not_started_verdict(error, 3, kResume);
  EXPECT_EQ(verdict.code, ExitCode::kEnvironment);
  EXPECT_EQ(verdict.reason, "no srun");
  EXPECT_EQ(verdict.next, "load a module; continue with `ptrain resume r`");
  EXPECT_EQ(verdict.attempt, 3);
  EXPECT_EQ(not_started_verdict({ExitCode::kBug, "x", "", {}}, 0, kResume).next,
            "continue with `ptrain resume r`");
}

TEST(OwnVerdicts, TakenNodesAreLostOnes) {
  const auto verdict = taken_nodes_verdict(killed(), {"c", "d"});
  EXPECT_EQ(verdict.code, ExitCode::kNodeLost);
  EXPECT_EQ(verdict.reason, "Slurm has taken c, d from the job");
  EXPECT_EQ(verdict.nodes, (Nodes{"c", "d"}));
  EXPECT_EQ(verdict.step, 7);
}

TEST(OwnVerdicts, WhatKeepsFromARestartStandsBesideTheFailure) {
  const auto stopped = stopped_between_verdict(killed(), SIGTERM, kResume);
  EXPECT_EQ(stopped.code, ExitCode::kStopped);
  EXPECT_EQ(stopped.reason,
            "stopped on request (signal TERM) before a restart; before that: rank 1: killed by "
            "signal 9 (Killed)");
  EXPECT_EQ(stopped.next, "continue with `ptrain resume r`");
  EXPECT_EQ(stopped.rank, 1);

  const auto ended = ended_by_slurm_verdict(killed(), "42", "COMPLETING", kResume);
  EXPECT_EQ(static_cast<int>(ended.code), 143);
  EXPECT_EQ(ended.reason,
            "Slurm has ended the job (COMPLETING); before that: rank 1: killed by signal 9 "
            "(Killed)");
  EXPECT_EQ(ended.next,
            "see `squeue -j 42`: where Slurm does not start the job again, continue with `ptrain "
            "resume r`");

  const Error error{ExitCode::kNothingFits, "no layout fits 1 node", "", {}};
  const auto few = short_of_nodes_verdict(killed(), {"a", "b"}, error, kResume);
  EXPECT_EQ(few.code, ExitCode::kRankSignal);
  EXPECT_EQ(few.reason,
            "rank 1: killed by signal 9 (Killed); the run cannot go on without a, b: no layout "
            "fits 1 node");
  EXPECT_EQ(few.next, "continue with `ptrain resume r` where there are enough nodes");
}

TEST(OwnVerdicts, JobsThatSaveNothingAreNotFollowed) {
  const auto verdict = none_follows_verdict(killed());
  EXPECT_EQ(verdict.code, ExitCode::kNoProgress);
  EXPECT_NE(verdict.next.find("give jobs more time (--time)"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::supervise
