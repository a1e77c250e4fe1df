#include "launcher/cluster/slurm_command.h"

#include <gtest/gtest.h>

namespace ptrain::cluster {
namespace {

TEST(SlurmCommand, ValuesEndAtBlanks) {
  EXPECT_EQ(value_of("JobId=7 JobState=RUNNING Reason=None", "JobState"), "RUNNING");
  EXPECT_EQ(value_of("JobId=7 JobState=RUNNING\n", "JobState"), "RUNNING");
  EXPECT_EQ(value_of("JobId=7", "JobId"), "") << "the first word is what a line is about";
}

}  // namespace
}  // namespace ptrain::cluster
