#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "launcher/base/file.h"
#include "launcher/supervise/post_mortem.h"
#include "launcher/supervise/run_folder.h"
#include "launcher/supervise/secrets.h"

namespace ptrain::supervise {
namespace {

TEST(Secrets, AreKnownByTheNamesOfTheirVariables) {
  const auto secrets =
      secrets_in({"WANDB_API_KEY=abcdef0123", "HOME=/home/secrets", "my_password=hunter22",
                  "TOKEN=1", "EMPTY_SECRET=", "NOTHING", "GITHUB_TOKEN=abcdef0123456"});
  EXPECT_EQ(secrets, (std::vector<std::string>{"abcdef0123456", "abcdef0123", "hunter22"}));
  EXPECT_EQ(without_secrets("a abcdef0123456, abcdef0123! hunter2 hunter22hunter22", secrets),
            "a ***, ***! hunter2 ******");
}

TEST(PostMortem, HoldsTheEndOfEachLogButNoSecret) {
  const std::string root = testing::TempDir() + "/post-mortem";
  std::filesystem::remove_all(root);
  const auto directory = create_run(root);
  ASSERT_TRUE(directory);
  ASSERT_TRUE(create_attempt(*directory, 1));
  ::setenv("SOME_API_TOKEN", "tok-0123456789", 1);
  run::Plan plan;
  plan.ranks = {{0, "node1", 0, -1}, {1, "node2", 0, -1}};
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_TRUE(publish_file(directory->rank_log(1, rank),
                             "rank " + std::to_string(rank) + " says tok-0123456789\nand ends\n"));
  run::Verdict verdict{ExitCode::kRankError, "rank 1: tok-0123456789 is wrong", "", 1, 1, 0, 7};
  const std::string text = post_mortem(*directory, plan, verdict, "JobId=7");
  ::unsetenv("SOME_API_TOKEN");
  EXPECT_EQ(text.find("tok-"), std::string::npos);
  for (const char* part : {"FAILED (10) rank 1: *** is wrong", "rank 1 says ***", "and ends",
                           "rank 1: node2 slot 0", "JobId=7"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  // The failed rank comes first.
  EXPECT_LT(text.find("log of rank 1"), text.find("log of rank 0"));
}

}  // namespace
}  // namespace ptrain::supervise
