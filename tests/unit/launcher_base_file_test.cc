#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "launcher/base/file.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  File() {
    std::string pattern = (fs::temp_directory_path() / "ptrain-file-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~File() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::size_t num_entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::string folder_;
};

TEST_F(File, PublishedTextIsReadBack) {
  const std::string text("a\0b\n", 4);
  ASSERT_TRUE(publish_file(path("a"), text));
  EXPECT_EQ(read_file(path("a"), 4), text);
  ASSERT_TRUE(publish_file(path("a"), "new"));
  EXPECT_EQ(read_file(path("a"), 4), "new");
  EXPECT_EQ(num_entries(), 1U);
  struct stat status = {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(File, TooLargeIsRefused) {
  ASSERT_TRUE(publish_file(path("a"), "12345"));
  EXPECT_TRUE(read_file(path("a"), 5));
  const auto large = read_file(path("a"), 4);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().message, path("a") + ": larger than 4 bytes");
}

TEST_F(File, PartsAreReadOrTheCauseIsNamed) {
  ASSERT_TRUE(publish_file(path("a"), "12345"));
  EXPECT_EQ(read_part(path("a"), 1, 4), "2345");
  EXPECT_EQ(read_part(path("a"), 2, 4).error().message,
            path("a") + ": too short: it has 5 bytes, and those from 2 to 6 are needed");
  EXPECT_EQ(read_part(path("no"), 0, 1).error().message,
            path("no") + ": No such file or directory");
  EXPECT_EQ(read_part(folder_, 0, 1).error().message, folder_ + ": Is a directory");
  EXPECT_EQ(read_part(folder_, 0, 1).error().code, ExitCode::kUnusable);
}

TEST_F(File, WhatIsNoFileIsNamed) {
  EXPECT_EQ(read_file(path("no"), 9).error().message, path("no") + ": No such file or directory");
  EXPECT_EQ(read_file(folder_, 9).error().message, folder_ + ": Is a directory");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(path("pipe"), 9).error().message, path("pipe") + ": not a regular file");
}

TEST_F(File, AFailedPublicationLeavesNothing) {
  fs::create_directory(path("taken"));
  const Status status = publish_file(path("taken"), "text");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::kEnvironment);
  EXPECT_EQ(num_entries(), 1U);
  EXPECT_EQ(publish_file(path("no/such"), "text").error().message,
            "there is no folder " + path("no"));
  const std::string long_name(255, 'a');  // as itself it fits, with an ending it does not
  EXPECT_EQ(publish_file(path(long_name), "text").error().message,
            path(long_name) + ": File name too long");
}

// The remedy of what fails with this limit down to `value`.
template <class Action>
std::string remedy_with_limit(__rlimit_resource what, rlim_t value, const Action& action) {
  rlimit before{};
  ::getrlimit(what, &before);
  const rlimit little{value, before.rlim_max};
  ::setrlimit(what, &little);
  const auto done = action();
  ::setrlimit(what, &before);
  return done ? "done" : done.error().hint;
}

TEST_F(File, LimitsOfTheProcessAreNamed) {
  ::signal(SIGXFSZ, SIG_IGN);
  EXPECT_EQ(remedy_with_limit(RLIMIT_FSIZE, 2, [&] { return publish_file(path("a"), "text"); }),
            "raise the limit of a file's size (ulimit -f)");
  ASSERT_TRUE(publish_file(path("a"), "text"));
  EXPECT_EQ(remedy_with_limit(RLIMIT_NOFILE, 0, [&] { return read_file(path("a"), 9); }),
            "raise the limit of open files (ulimit -n)");
}

// As a file of another node on a file system that tells of it late.
TEST_F(File, OneThatComesLateIsAwaited) {
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ASSERT_TRUE(publish_file(path("late"), "here"));
  });
  EXPECT_FALSE(read_file(path("late"), 9));
  EXPECT_EQ(await_file(path("late"), 9).value_or("nothing"), "here");
  late.join();
}

TEST_F(File, OneThatNeverComesIsNamedOnceTheTimeIsOver) {
  const auto begin = std::chrono::steady_clock::now();
  const auto never = await_file(path("never"), 9, std::chrono::milliseconds(200));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().message, path("never") + ": not seen here within 0.2 s");
  EXPECT_NE(never.error().hint.find("all nodes share"), std::string::npos);
}

TEST(Paths, AreMadeAbsolute) {
  EXPECT_EQ(absolute_path("/a/./b/../c"), "/a/c");
  EXPECT_EQ(absolute_path("x"), (fs::current_path() / "x").string());
  EXPECT_EQ(absolute_path("x/"), (fs::current_path() / "x").string());
  EXPECT_EQ(absolute_path("."), fs::current_path().string());
  EXPECT_EQ(absolute_path("/"), "/");
}

TEST(Paths, OfTheInstallationLieAboveTheProgram) {
  EXPECT_EQ(installed_path("no-such-thing-anywhere"), "");
  const std::string found = installed_path(fs::read_symlink("/proc/self/exe").filename().string());
  EXPECT_EQ(found, fs::read_symlink("/proc/self/exe").string());
}

}  // namespace
}  // namespace ptrain
