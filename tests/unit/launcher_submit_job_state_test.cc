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
  const auto state = state_in_sacct("CANCELLED by 0|0:15|node[1-2]\n");
  ASSERT_TRUE(state);
  EXPECT_EQ(*state, (JobState{JobPhase::kEnded, "CANCELLED", "", "node[1-2]", "", 0, 15}));
  EXPECT_EQ(state_in_sacct("PENDING|0:0|None assigned\n")->nodes, "");
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
