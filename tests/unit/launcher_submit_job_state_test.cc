#include <gtest/gtest.h>

#include "launcher/submit/follow.h"
#include "launcher/submit/job_state.h"

namespace ptrain::submit {
namespace {

std::string scontrol(const std::string& state) {
  return "JobId=7 JobName=x UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=1 Nice=0 "
         "Account=(null) QOS=(null) " +
         state + " Comment=a JobState=FAILED b StdErr=/a b/c Power= \n";
}

// Lines of Slurm 22.05.8.
TEST(JobState, Waiting) {
  const auto state = state_in_scontrol(
      scontrol("JobState=PENDING Reason=Resources Dependency=(null) Requeue=1 Restarts=0 "
               "ExitCode=0:0 StartTime=Unknown NodeList=(null)"));
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(*state, (JobState{JobPhase::kWaiting, "PENDING", "Resources", "", "", 0, 0}));
  EXPECT_EQ(in_words(*state), "waits in the queue (Resources)");
  EXPECT_FALSE(is_over(*state));
}

TEST(JobState, RunningAndEnded) {
  const auto running = state_in_scontrol(
      scontrol("JobState=RUNNING Reason=None ExitCode=0:0 StartTime=2026-11-30T06:29:34 "
               "NodeList=node[1-2]"));
  ASSERT_TRUE(running);
  EXPECT_EQ(running->phase, JobPhase::kRunning);
  EXPECT_EQ(in_words(*running), "runs on node[1-2]");
  const auto ended = state_in_scontrol(
      scontrol("JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0 NodeList=node1"));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->phase, JobPhase::kEnded);
  EXPECT_EQ(ended->code, 3);
  EXPECT_EQ(in_words(*ended), "has ended: FAILED, exit code 3");
}

TEST(JobState, AccountingKnowsLonger) {
  const auto state = state_in_sacct("CANCELLED by 0|0:15|node[1-2]|7\n");
  ASSERT_TRUE(state);
  EXPECT_EQ(*state, (JobState{JobPhase::kEnded, "CANCELLED", "", "node[1-2]", "", 0, 15}));
  EXPECT_EQ(state_in_sacct("PENDING|0:0|None assigned|7\n")->nodes, "");
}

std::string task(const std::string& number, const std::string& state, const std::string& nodes) {
  return "JobId=8 ArrayJobId=7 ArrayTaskId=" + number + " JobName=x JobState=" + state +
         " Reason=None ExitCode=0:0 NodeList=" + nodes + " \n";
}

// The tasks of an array, as `scontrol -o show job 7` of Slurm 22.05.8 lists them.
TEST(JobState, OfAnArrayIsThatOfTheTaskThatTellsMost) {
  const std::string waits = task("3-4%1", "PENDING", "(null)");
  const auto state_of = [](const std::string& text) {
    const auto state = state_in_scontrol(text);
    return state ? name_of("7", *state) + " " + in_words(*state) : state.error().message;
  };
  const std::string ended = task("1", "FAILED", "node1");
  EXPECT_EQ(state_of(waits), "7 waits in the queue");
  EXPECT_EQ(state_of(waits + task("2", "RUNNING", "node2") + ended), "7_2 runs on node2");
  // The task that ends is of the past once others wait, and the last one where none does.
  EXPECT_EQ(state_of(task("2", "COMPLETING", "node2") + waits + ended), "7 waits in the queue");
  EXPECT_EQ(state_of(task("2", "COMPLETING", "node2") + ended), "7_2 runs on node2");
  // Tasks that were cancelled before they began tell nothing.
  const std::string cancelled = task("4294967294", "CANCELLED", "");
  EXPECT_EQ(state_of(cancelled + ended + task("2", "TIMEOUT", "node2")), "7_2 has ended: TIMEOUT");
  EXPECT_EQ(state_of(task("2", "CANCELLED", "(null)") + ended), "7_1 has ended: FAILED");
  EXPECT_EQ(state_of(cancelled), "7 has ended: CANCELLED");
  // Slurm has put the second back into the queue, and begun the third.
  EXPECT_EQ(state_of(task("2", "PENDING", "(null)") + task("3", "RUNNING", "node1")),
            "7_3 runs on node1");
  EXPECT_EQ(state_of(task("10", "FAILED", "node1") + task("9", "TIMEOUT", "node1")),
            "7_10 has ended: FAILED");
}

TEST(JobState, CommentsNameNoTasks) {
  const auto state =
      state_in_scontrol("JobId=7 JobName=a JobState=RUNNING Comment=b ArrayTaskId=2 c\n");
  ASSERT_TRUE(state);
  EXPECT_EQ(name_of("7", *state), "7");
}

TEST(JobState, OfAnArrayInAccounting) {
  const auto state = state_in_sacct(
      "FAILED|1:0|node1|7_1\nTIMEOUT|0:0|node2|7_2\nCANCELLED by 0|0:0|None assigned|7_[3-4%1]\n");
  ASSERT_TRUE(state);
  EXPECT_EQ(name_of("7", *state) + " " + in_words(*state), "7_2 has ended: TIMEOUT");
}

TEST(JobState, WhatSaysNothingIsAnError) {
  EXPECT_FALSE(state_in_scontrol("slurm_load_jobs error: Invalid job id specified"));
  EXPECT_FALSE(state_in_scontrol(""));
  EXPECT_FALSE(state_in_sacct("Slurm accounting storage is disabled"));
  EXPECT_FALSE(state_in_sacct(""));
}

JobState ended(const char* word) { return {JobPhase::kEnded, word, "", "", "", 0, 0}; }

constexpr const char* kResume = "`ptrain resume /runs/a`";

TEST(Ending, CodesOfJobsWithoutVerdict) {
  EXPECT_EQ(ending_of("7", ended("CANCELLED"), false, kResume).code, ExitCode::kStopped);
  EXPECT_EQ(ending_of("7", ended("TIMEOUT"), true, kResume).code, ExitCode::kPreempted);
  EXPECT_EQ(ending_of("7", ended("NODE_FAIL"), true, kResume).code, ExitCode::kNodeLost);
  EXPECT_EQ(ending_of("7", ended("OUT_OF_MEMORY"), true, kResume).code, ExitCode::kOutOfMemory);
  EXPECT_EQ(ending_of("7", ended("COMPLETED"), true, kResume).code, ExitCode::kEnvironment)
      << "success of a script is no verdict";
  EXPECT_EQ(ending_of("7", ended("TIMEOUT"), true, kResume).next,
            "continue with `ptrain resume /runs/a`");
}

TEST(Ending, ScriptThatWroteNothing) {
  const Ending silent = ending_of("7", ended("FAILED"), false, kResume);
  EXPECT_NE(silent.reason.find("not to see the run directory"), std::string::npos);
  const JobState forgotten{JobPhase::kForgotten, "", "", "", "", 0, 0};
  EXPECT_EQ(ending_of("7", forgotten, false, kResume).reason.find("not to see"), std::string::npos);
}

}  // namespace
}  // namespace ptrain::submit
