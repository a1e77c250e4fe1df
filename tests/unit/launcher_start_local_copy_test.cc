#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "launcher/start/local_copy.h"

namespace ptrain::start {
namespace {

namespace fs = std::filesystem;

class LocalCopy : public testing::Test {
 protected:
  LocalCopy() {
    std::string folder = testing::TempDir() + "ptrain-copies-XXXXXX";
    root_ = ::mkdtemp(folder.data());
    disk_ = root_ + "/disk";
    fs::create_directory(disk_);
    write(root_ + "/ptrain", "the program");
    write(root_ + "/libengine.so", std::string(3 << 20, 'e'));
    list_ = *list_copies({root_ + "/ptrain", root_ + "/libengine.so"});
  }
  ~LocalCopy() override { fs::remove_all(root_); }

  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string copy() const {
    const auto folder = copy_here(list_, disk_);
    return folder ? *folder : folder.error().message;
  }

  std::string root_, disk_;
  CopyList list_;
};

TEST_F(LocalCopy, IsMadeOnceAndCanBeRun) {
  const std::string folder = copy();
  EXPECT_EQ(read(folder + "/ptrain"), "the program");
  EXPECT_EQ(read(folder + "/libengine.so"), read(root_ + "/libengine.so"));
  struct stat info {};
  ASSERT_EQ(::stat((folder + "/ptrain").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  const auto made = fs::last_write_time(folder + "/ptrain");
  EXPECT_EQ(copy(), folder);
  EXPECT_EQ(fs::last_write_time(folder + "/ptrain"), made);
}

TEST_F(LocalCopy, IsMadeAgainWhereItIsDamaged) {
  const std::string folder = copy();
  write(folder + "/ptrain", "the pr0gram");
  EXPECT_EQ(copy(), folder);
  EXPECT_EQ(read(folder + "/ptrain"), "the program");
}

TEST_F(LocalCopy, JobsAtTheSameTimeMakeOne) {
  std::vector<std::string> folders(6);
  {
    std::vector<std::jthread> jobs;
    for (auto& folder : folders) jobs.emplace_back([this, &folder] { folder = copy(); });
  }
  for (const auto& folder : folders) EXPECT_EQ(folder, folders[0]);
  EXPECT_EQ(read(folders[0] + "/libengine.so"), read(root_ + "/libengine.so"));
  EXPECT_EQ(std::distance(fs::directory_iterator(disk_), {}), 2) << "the copies and their lock";
}

TEST_F(LocalCopy, WhatCannotBeMadeLeavesNothing) {
  write(root_ + "/ptrain", "another program");
  EXPECT_NE(copy().find("is not what it was when this job began"), std::string::npos);
  fs::remove(root_ + "/libengine.so");
  EXPECT_FALSE(copy_here(list_, disk_));
  for (const auto& entry : fs::directory_iterator(disk_)) EXPECT_FALSE(entry.is_directory());
  EXPECT_FALSE(copy_here(list_, root_ + "/nowhere"));
}

TEST_F(LocalCopy, AFolderThatOthersMayWriteIsRefused) {
  const std::string folder = copy();
  ::chmod(folder.c_str(), 0777);
  EXPECT_NE(copy().find("is not ours alone"), std::string::npos);
}

TEST_F(LocalCopy, ListsComeBackFromText) {
  EXPECT_EQ(copy_list_from_text(to_text(list_)), list_);
  EXPECT_FALSE(copy_list_from_text(R"([{"source": 1}])"));
}

}  // namespace
}  // namespace ptrain::start
