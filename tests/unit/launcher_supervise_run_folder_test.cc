#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
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

TEST_F(RunFolder, AnAttemptsFolderThatExistsIsToGiveWay) {
  const auto directory = create_run(folder_ + "/run").value();
  ASSERT_TRUE(create_attempt(directory, 1));
  const Status again = create_attempt(directory, 1);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, directory.attempt_folder(1) + " exists already");
  EXPECT_EQ(again.error().hint, "remove or rename that folder");
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

// Root looks into everything; not while this lives.
class WithoutRootsPass {
 public:
  WithoutRootsPass() {
    ::syscall(SYS_capget, &header_, before_);
    __user_cap_data_struct now[2] = {before_[0], before_[1]};
    now[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
    ::syscall(SYS_capset, &header_, now);
  }
  ~WithoutRootsPass() { ::syscall(SYS_capset, &header_, before_); }
  WithoutRootsPass(const WithoutRootsPass&) = delete;
  WithoutRootsPass& operator=(const WithoutRootsPass&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2] = {};
};

// Told apart from a folder that holds no run.
TEST_F(RunFolder, AnotherUsersIsSaidToBe) {
  const std::string path = folder_ + "/run";
  ASSERT_TRUE(create_run(path));
  fs::permissions(path, fs::perms::none);
  const auto opened = [&] {
    const WithoutRootsPass without;
    return open_run(path);
  }();
  fs::permissions(path, fs::perms::owner_all);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "cannot look into " + path + ": Permission denied");
}

// What counts through attempts and steps would take for ever, or wrap around.
TEST_F(RunFolder, NumbersThatNoRunReachesAreNone) {
  const auto made = create_run(folder_ + "/run");
  ASSERT_TRUE(made);
  for (const char* name : {"attempt-2", "attempt-2147483647", "attempt-9223372036854775807",
                           "attempt--5", "attempt-3x"})
    fs::create_directory(made->root + "/logs/" + name);
  EXPECT_EQ(next_attempt(*made), 3);
  for (const char* name : {"step-00000004", "step-9223372036854775807", "step--9"})
    fs::create_directory(made->checkpoints() + "/" + name);
  EXPECT_EQ(checkpoint_steps(*made), std::vector<std::int64_t>{4});
}

TEST_F(RunFolder, TheWatchSeesWhatBecomesOfTheFolder) {
  const std::string path = folder_ + "/run";
  const auto made = [&] {
    const auto created = create_run(path);
    EXPECT_TRUE(created);
    std::ofstream(created->plan()) << "{}";
    return *created;
  };
  const FolderWatch watch(made());
  EXPECT_TRUE(watch.is_there());
  fs::rename(path, path + "-moved");
  EXPECT_FALSE(watch.is_there());
  made();  // another run at the same place
  EXPECT_FALSE(watch.is_there());
  fs::remove_all(path);
  fs::rename(path + "-moved", path);
  EXPECT_TRUE(watch.is_there());
  fs::remove(path + "/plan.json");  // on its way out
  EXPECT_FALSE(watch.is_there());
}

// The folder above is what cannot be made, and why it cannot is what counts.
TEST_F(RunFolder, AFolderAboveThatCannotBeMadeIsNamed) {
  std::ofstream(folder_ + "/file") << "x";
  const auto created = create_run(folder_ + "/file/deep/run");
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().message, "cannot create " + folder_ + "/file/deep: Not a directory");
}

TEST_F(RunFolder, OtherReasonsEndTheSearch) {
  const auto created = create_next_run("/proc/ptrain-cannot-write-here");
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ExitCode::kEnvironment);
}

}  // namespace
}  // namespace ptrain::supervise
