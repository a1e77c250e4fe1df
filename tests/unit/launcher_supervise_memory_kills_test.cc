#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/supervise/memory_kills.h"

namespace ptrain::supervise {
namespace {

namespace fs = std::filesystem;

// A file tree as the kernel shows it.
class Tree : public testing::Test {
 protected:
  Tree() {
    char name[] = "/tmp/ptrain-kills-XXXXXX";
    root_ = ::mkdtemp(name);
    write("/proc/vmstat", "nr_free_pages 12\noom_kill 7\n");
  }
  ~Tree() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(Tree, Version2IsReadFromMemoryEvents) {
  write("/proc/self/cgroup", "0::/slurm/job_1\n");
  write("/sys/fs/cgroup/slurm/job_1/memory.events",
        "low 0\nhigh 0\nmax 31\noom 3\noom_kill 2\noom_group_kill 0\n");
  const auto kills = MemoryKills::find(root_);
  EXPECT_EQ(kills.count(), 2);
  EXPECT_EQ(kills.where(), "in this job's control group");
  write("/sys/fs/cgroup/slurm/job_1/memory.events", "oom 4\noom_kill 3\n");
  EXPECT_EQ(kills.count(), 3);
}

TEST_F(Tree, Version1IsReadFromOomControl) {
  write("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n");
  write("/sys/fs/cgroup/memory/job/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(MemoryKills::find(root_).count(), 5);
}

TEST_F(Tree, WithoutAGroupTheMachineIsCounted) {
  write("/proc/self/cgroup", "0::/\n");
  const auto kills = MemoryKills::find(root_);
  EXPECT_EQ(kills.count(), 7);
  EXPECT_EQ(kills.where(), "on this machine");
  fs::remove_all(root_ + "/proc");
  EXPECT_EQ(MemoryKills::find(root_).count(), 0);
}

}  // namespace
}  // namespace ptrain::supervise
