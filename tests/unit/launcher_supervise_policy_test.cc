#include <gtest/gtest.h>

#include "launcher/supervise/policy.h"

namespace ptrain::supervise {
namespace {

using Nodes = std::vector<std::string>;

// A run in a Slurm job of four nodes; each failure is told with the newest checkpoint it left.
struct Job {
  Past past;
  Job() { past.num_nodes = 4; }

  Job& failed(ExitCode code, std::int64_t step, std::int64_t checkpoint, int rank = 0,
              Nodes nodes = {}) {
    past.failures.push_back({"7", code, rank, step, checkpoint, std::move(nodes)});
    past.verdict.code = code;
    past.verdict.rank = rank;
    past.checkpoint = checkpoint;
    past.num_restarts = static_cast<int>(past.failures.size()) - 1;
    return *this;
  }
  Job& limit(int max_restarts) {
    past.max_restarts = max_restarts;
    return *this;
  }
  Decision decision() const { return decide(past); }
};

TEST(Policy, SuccessGoesOnToTheNextShape) {
  Past past;
  EXPECT_EQ(decide(past).action, AfterAttempt::kFinish);
  past.next_shape = "long";
  EXPECT_EQ(decide(past).action, AfterAttempt::kNextShape);
}

TEST(Policy, OnlySomeFailuresAreTriedAgain) {
  for (const auto code : {ExitCode::kRankError, ExitCode::kRankSignal, ExitCode::kOutOfMemory,
                          ExitCode::kHang, ExitCode::kNodeLost})
    EXPECT_EQ(Job().failed(code, 5, -1).decision().action, AfterAttempt::kRestart);
  for (const auto code : {ExitCode::kBug, ExitCode::kUsage, ExitCode::kEnvironment,
                          ExitCode::kNothingFits, ExitCode::kUnusable, ExitCode::kNonFinite}) {
    EXPECT_EQ(Job().failed(code, 9, 5).decision().action, AfterAttempt::kFinish);
    EXPECT_EQ(Job().failed(code, 9, 5).decision().code, code);
  }
  Past stopped;
  stopped.verdict.code = ExitCode::kPreempted;
  EXPECT_EQ(decide(stopped).action, AfterAttempt::kFinish);
}

// Whatever the run began from: resume knows, and its directory is there already.
TEST(Policy, ResumeIsTheWayOnWithAndWithoutACheckpoint) {
  Job job;
  job.past.resume = "`ptrain resume /runs/a`";
  EXPECT_EQ(
      job.failed(ExitCode::kUnusable, 0, -1).decision().next,
      "mend what the message names; no checkpoint was written: `ptrain resume /runs/a` starts "
      "where this run began");
  EXPECT_EQ(job.failed(ExitCode::kUnusable, 9, 5).decision().next,
            "mend what the message names; continue from step 5 with `ptrain resume /runs/a`");
}

TEST(Policy, AGivenNumberOfRestartsHolds) {
  EXPECT_EQ(Job().failed(ExitCode::kNodeLost, 9, 5).limit(0).decision().action,
            AfterAttempt::kFinish);
  Job job;
  job.failed(ExitCode::kHang, 7, 5).failed(ExitCode::kHang, 11, 9).limit(2);
  EXPECT_EQ(job.decision().action, AfterAttempt::kRestart);
  job.failed(ExitCode::kHang, 15, 12);
  EXPECT_EQ(job.decision().action, AfterAttempt::kFinish);
  EXPECT_EQ(job.decision().code, ExitCode::kHang);
}

TEST(Policy, ProgressNeverUsesUpTheBudget) {
  Job job;
  for (int i = 1; i < 100; ++i) job.failed(ExitCode::kRankSignal, 10 * i + 3, 10 * i, i % 7);
  EXPECT_EQ(job.decision().action, AfterAttempt::kRestart);
  EXPECT_EQ(job.decision().wait_s, 0);
}

TEST(Policy, TheSameFailureAtTheSameStepIsNotTriedForEver) {
  Job job;
  job.failed(ExitCode::kRankError, 7, -1).failed(ExitCode::kRankError, 7, -1);
  EXPECT_EQ(job.decision().action, AfterAttempt::kFinish);
  EXPECT_EQ(job.decision().code, ExitCode::kNoProgress);
}

TEST(Policy, ThreeFailuresWithoutACheckpointEndTheRun) {
  Job job;
  job.failed(ExitCode::kRankSignal, 12, 10, 1);
  EXPECT_EQ(job.decision().wait_s, 0);
  job.failed(ExitCode::kRankError, 17, 10, 2);
  EXPECT_EQ(job.decision().action, AfterAttempt::kRestart);
  EXPECT_GT(job.decision().wait_s, 0);
  job.failed(ExitCode::kHang, 14, 10, 3);
  EXPECT_EQ(job.decision().code, ExitCode::kNoProgress);
}

TEST(Policy, TheSamePlanTakesTheSameMemory) {
  Job job;
  job.failed(ExitCode::kOutOfMemory, 12, 10, 1).failed(ExitCode::kOutOfMemory, 18, 10, 2);
  EXPECT_EQ(job.decision().code, ExitCode::kNoProgress);
}

TEST(Policy, ALostNodeIsDoneWithout) {
  Job job;
  job.failed(ExitCode::kNodeLost, 12, 10, -1, {"node2"});
  EXPECT_EQ(job.decision().exclude, Nodes{"node2"});
  EXPECT_EQ(job.decision().next, "a new attempt starts from step 10, without node2");
  job.past.num_nodes = 3;  // the next ones die one by one, all before a checkpoint
  job.failed(ExitCode::kNodeLost, 11, 10, -1, {"node3"});
  EXPECT_EQ(job.decision().action, AfterAttempt::kRestart);
  job.past.num_nodes = 1;
  EXPECT_EQ(job.failed(ExitCode::kNodeLost, 11, 10, -1, {"node4"}).decision().action,
            AfterAttempt::kFinish);
}

TEST(Policy, WhoLosesAllOthersIsAloneHimself) {
  Job job;
  job.failed(ExitCode::kNodeLost, 12, 10, -1, {"node2", "node3", "node4"});
  EXPECT_EQ(job.decision().action, AfterAttempt::kFinish);
  EXPECT_EQ(job.decision().code, ExitCode::kNodeLost);
}

TEST(Policy, ANodeWhereRanksFailTwiceIsDoneWithout) {
  Job job;
  job.failed(ExitCode::kRankSignal, 7, -1, 2, {"node3"});
  EXPECT_EQ(job.decision().exclude, Nodes{});
  job.failed(ExitCode::kRankSignal, 7, -1, 2, {"node3"});
  EXPECT_EQ(job.decision().action, AfterAttempt::kRestart);
  EXPECT_EQ(job.decision().exclude, Nodes{"node3"});
  job.failed(ExitCode::kRankSignal, 7, -1, 2, {"node4"});  // so it was not the node
  EXPECT_EQ(job.decision().code, ExitCode::kNoProgress);
}

TEST(Policy, FailuresEverywhereAreNoNodesFault) {
  Job job;
  job.failed(ExitCode::kRankSignal, 17, 10, 1, {"node1"});
  job.failed(ExitCode::kRankSignal, 27, 20, 2, {"node2"});
  job.failed(ExitCode::kRankSignal, 37, 30, 2, {"node2"});
  job.failed(ExitCode::kRankSignal, 47, 40, 1, {"node1"});
  EXPECT_EQ(job.decision().exclude, Nodes{});
}

TEST(Policy, OneMachineIsNeverExcluded) {
  Job job;
  job.past.num_nodes = 1;
  job.failed(ExitCode::kHang, 17, 10, 1, {"here"}).failed(ExitCode::kHang, 27, 20, 1, {"here"});
  EXPECT_EQ(job.decision().exclude, Nodes{});
}

// 143: by TERM, before anything could be saved.
TEST(Policy, SlurmEndsAJobWithOrWithoutACheckpoint) {
  for (const int code : {21, 143}) EXPECT_TRUE(is_end_of_job(static_cast<ExitCode>(code))) << code;
  for (const int code : {0, 1, 3, 14, 16, 20, 22, 130, 140})
    EXPECT_FALSE(is_end_of_job(static_cast<ExitCode>(code))) << code;
}

TEST(Policy, StepsFindTheirShape) {
  run::Plan plan;
  plan.recipe.shapes.resize(2);
  plan.recipe.shapes[0].name = "short";
  plan.recipe.shapes[0].steps = 30;
  plan.recipe.shapes[1].name = "long";
  plan.recipe.shapes[1].steps = 10;
  EXPECT_EQ(next_shape_name(plan, -1), "short");
  EXPECT_EQ(next_shape_name(plan, 29), "short");
  EXPECT_EQ(next_shape_name(plan, 30), "long");
  EXPECT_EQ(next_shape_name(plan, 39), "long");
  EXPECT_EQ(next_shape_name(plan, 40), "");
}

}  // namespace
}  // namespace ptrain::supervise
