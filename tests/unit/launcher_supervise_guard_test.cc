#include <gtest/gtest.h>
#include <signal.h>

#include "launcher/supervise/guard.h"

namespace ptrain::supervise {
namespace {

// As Slurm 22.05 writes it once node1, on which the script ran, is taken from a job.
TEST(Guard, AJobWithoutTheNodeOfItsScriptIsHeadless) {
  const std::string lost =
      "JobId=13 JobName=a JobState=RUNNING Reason=None BatchFlag=1 Reboot=0 NodeList=node[2-4] "
      "BatchHost=node1 NumNodes=3\n";
  EXPECT_TRUE(is_headless(lost));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = lost;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_FALSE(is_headless(with("node[2-4]", "node[1,3-4]")));
  EXPECT_FALSE(is_headless(with("RUNNING", "PENDING")));
  EXPECT_FALSE(is_headless(with("BatchFlag=1", "BatchFlag=0")));  // of salloc
  EXPECT_TRUE(is_headless(with("BatchFlag=1", "BatchFlag=2")));   // that was requeued once
  EXPECT_FALSE(is_headless("slurm_load_jobs error: Invalid job id specified"));
}

base::Command sleep_on(const std::string&, const std::string&) {
  return {{"/bin/sleep", "1000"}, {}};
}

// Slurm misses a node, and ends the guard there, half a minute after a new attempt has begun
// without it.
TEST(Guard, MovesWhereItsNodeIsNotUsedAnyMore) {
  Guard guard(sleep_on, "7", "node1");
  ASSERT_TRUE(guard.ensure({"node1", "node2", "node3"}));
  const int first = guard.pid();
  ASSERT_GT(first, 0);
  ASSERT_TRUE(guard.ensure({"node1", "node2", "node3"}));
  EXPECT_EQ(guard.pid(), first);
  ASSERT_TRUE(guard.ensure({"node1", "node3"}));
  const int second = guard.pid();
  EXPECT_NE(second, first);
  EXPECT_NE(::kill(first, 0), 0);
  ASSERT_TRUE(guard.ensure({"node1", "node3"}));
  EXPECT_EQ(guard.pid(), second);
}

}  // namespace
}  // namespace ptrain::supervise
