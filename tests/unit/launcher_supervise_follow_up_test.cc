#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launcher/base/file.h"
#include "launcher/supervise/follow_up.h"

namespace ptrain::supervise {
namespace {

// With commands of ours in place of Slurm's.
class FollowUp : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ptrain-follow-up-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = std::getenv("PATH");
    ::setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  // It notes its arguments, one after the other.
  void install(const std::string& command, const std::string& script = "") const {
    const std::string tool = folder_ + "/" + command;
    std::ofstream(tool) << "#!/bin/sh\nprintf '%s|' " << command << " \"$@\" >" << folder_
                        << "/noted\n"
                        << script;
    std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  }
  std::string noted() const { return read_file(folder_ + "/noted", 1000).value_or("nothing"); }

  std::string folder_, path_;
};

TEST_F(FollowUp, TasksThatWaitAreCancelledAndNoOther) {
  install("scancel");
  EXPECT_TRUE(cancel_waiting("7"));
  EXPECT_EQ(noted(), "scancel|--state=PENDING|7|");
  install("scancel", "echo 'scancel: error: no controller' >&2; exit 1\n");
  const Status failed = cancel_waiting("7");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message,
            "tasks of job array 7 that wait could not be cancelled: scancel: no controller");
  EXPECT_EQ(failed.error().hint, "cancel them with `scancel 7`");
}

TEST_F(FollowUp, AtTheTimeLimitWhatTheRecipeAsksFor) {
  using recipe::AtTimeLimit;
  install("scontrol");
  install("sbatch");
  const run::Directory run{folder_};
  EXPECT_TRUE(follow_up(AtTimeLimit::kStop, "7", run));
  EXPECT_EQ(noted(), "nothing");
  EXPECT_TRUE(follow_up(AtTimeLimit::kRequeue, "7", run));
  EXPECT_EQ(noted(), "scontrol|requeue|7|");
  const Status without = follow_up(AtTimeLimit::kChain, "7", run);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().message, "there is no batch script " + run.script() + " to submit");
  std::ofstream(run.script()) << "#!/bin/sh\n";
  EXPECT_TRUE(follow_up(AtTimeLimit::kChain, "7", run));
  EXPECT_EQ(noted(), "sbatch|--parsable|--dependency=afterany:7|" + run.script() + "|");
}

TEST(FollowUpText, NamesTheJobThatGoesOn) {
  using recipe::AtTimeLimit;
  EXPECT_EQ(next_task_text("7_2"),
            "task 7_2 of the job array goes on, where it is still in the queue");
  EXPECT_EQ(follow_up_text(AtTimeLimit::kStop, "7"), "");
  EXPECT_EQ(follow_up_text(AtTimeLimit::kRequeue, "7"), "Slurm starts job 7 again, and it goes on");
  EXPECT_EQ(follow_up_text(AtTimeLimit::kChain, "7"), "a job that follows 7 goes on");
}

}  // namespace
}  // namespace ptrain::supervise
