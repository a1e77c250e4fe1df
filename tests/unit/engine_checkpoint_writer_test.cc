#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <filesystem>

#include "engine/checkpoint/checkpoint.h"

namespace ptrain::checkpoint {
namespace {

namespace fs = std::filesystem;

struct Held {
  std::size_t bytes, files;
};

Held held() {
  const auto files = fs::directory_iterator("/proc/self/fd");
  return {mallinfo2().uordblks, static_cast<std::size_t>(std::distance(begin(files), end(files)))};
}

// In memory where there is such a file system: a hundred saves wait five hundred times for a disk.
std::string fresh_folder() {
  const fs::path parent = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
  std::string name = (parent / "ptrain-XXXXXX").string();
  return mkdtemp(name.data());
}

TEST(CheckpointWriter, AHundredSavesKeepNothing) {
  const std::string folder = fresh_folder();
  const auto world = comm::make_single();
  std::vector<float> data(100000, 1.5f);
  const Items items{{{"model.w", DType::kFloat32, {1000, 100}, 0, 100000, data.data()}},
                    {{"train.step", 7}}};
  Held early{};
  for (int step = 1; step <= 100; ++step) {
    save(folder + "/step-" + std::to_string(10000000 + step), items, *world);
    prune(folder, 2);
    if (step == 10) early = held();
  }
  const Held late = held();
  EXPECT_LE(late.bytes, early.bytes + 4096);
  EXPECT_EQ(late.files, early.files);
  world->close();
  fs::remove_all(folder);
}

// The run directory was removed or moved while the run went on.
TEST(CheckpointWriter, ALostRunDirectoryDoesNotComeBack) {
  const std::string run = fresh_folder();
  const auto world = comm::make_single();
  const Items items{{}, {{"train.step", 7}}};
  save(run + "/checkpoints/step-1", items, *world);
  EXPECT_TRUE(fs::exists(run + "/checkpoints/step-1"));
  fs::remove_all(run);
  EXPECT_ANY_THROW(save(run + "/checkpoints/step-2", items, *world));
  EXPECT_FALSE(fs::exists(run));
  world->close();
}

}  // namespace
}  // namespace ptrain::checkpoint
