#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "launcher/supervise/run_folder.h"

namespace ptrain::supervise {
namespace {

namespace fs = std::filesystem;

class RunFolder : public testing::Test {
 protected:
  RunFolder() {
    std::string pattern = (fs::temp_directory_path() / "ptrain-run-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~RunFolder() override { fs::remove_all(folder_); }

  std::string folder_;
};

TEST_F(RunFolder, OneThatExistsIsRefused) {
  const std::string path = folder_ + "/runs/tiny/20260101-000000";
  ASSERT_TRUE(create_run(path));
  const auto again = create_run(path);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ExitCode::kUsage);
  EXPECT_EQ(again.error().message, path + " exists already");
}

TEST_F(RunFolder, RunsOfTheSameSecondAreNumbered) {
  const std::string path = folder_ + "/runs/tiny/20260101-000000";
  for (const char* suffix : {"", "-2", "-3"}) {
    const auto created = create_next_run(path);
    ASSERT_TRUE(created) << created.error().message;
    EXPECT_EQ(created->root, path + suffix);
    EXPECT_TRUE(fs::is_directory(created->checkpoints()));
  }
}

// Told apart from a folder that holds no run.
TEST_F(RunFolder, AnotherUsersIsSaidToBe) {
  if (::geteuid() == 0) GTEST_SKIP() << "root looks into everything";
  const std::string path = folder_ + "/run";
  ASSERT_TRUE(create_run(path));
  fs::permissions(path, fs::perms::none);
  const auto opened = open_run(path);
  fs::permissions(path, fs::perms::owner_all);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "cannot look into " + path + ": Permission denied");
}

TEST_F(RunFolder, OtherReasonsEndTheSearch) {
  const auto created = create_next_run("/proc/ptrain-cannot-write-here");
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ExitCode::kEnvironment);
}

}  // namespace
}  // namespace ptrain::supervise
