#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "launcher/base/file.h"
#include "launcher/preflight/node_check.h"

namespace ptrain::preflight {
namespace {

class Directory : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ptrain-node-XXXXXX";
    task_.run_directory = ::mkdtemp(name);
    task_.mark = "a secret";
    report_.node = "n1";
  }
  void TearDown() override { std::filesystem::remove_all(task_.run_directory); }
  void write(const std::string& path, const std::string& text) const {
    ASSERT_TRUE(publish_file(path, text, Lasts::kUntilPowerFails));
  }
  std::string plan() const { return task_.run_directory + "/plan.json"; }
  std::string mark() const { return mark_file(task_.run_directory, task_.mark); }

  NodeTask task_;
  NodeReport report_;
};

// As NFS tells of files of other nodes, and of new versions of them.
TEST_F(Directory, WhatIsSeenLateIsAwaited) {
  write(plan(), "new");
  task_.plan = hash_of_file(plan()).value();
  write(plan(), "old");
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    write(mark(), task_.mark);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    write(plan(), "new");
  });
  look_at_directory(task_, std::chrono::seconds(20), report_);
  other.join();
  EXPECT_TRUE(report_.sees_mark);
  EXPECT_TRUE(report_.knows_directory);
  EXPECT_EQ(report_.plan, task_.plan);
  EXPECT_EQ(report_.write_error, "");
  const auto answer = read_file(answer_file(task_.run_directory, task_.mark, "n1"), 99);
  EXPECT_EQ(answer.value_or(""), task_.mark);
}

TEST_F(Directory, WhatIsNeverSeenIsToldOnceTheTimeIsOver) {
  const auto begin = std::chrono::steady_clock::now();
  look_at_directory(task_, std::chrono::milliseconds(200), report_);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
  EXPECT_FALSE(report_.sees_mark);
  EXPECT_TRUE(report_.knows_directory);
}

TEST_F(Directory, NoTwoPreflightsHaveTheSameFiles) {
  EXPECT_NE(mark_file("/run", "one"), mark_file("/run", "two"));
  EXPECT_EQ(mark().find(task_.mark), std::string::npos);
}

}  // namespace
}  // namespace ptrain::preflight
