// What reading a checkpoint costs: bytes, memory, open files.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/dcp/metadata.h"
#include "engine/base/engine_error.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/publisher.h"
#include "engine/checkpoint/rank_file.h"
#include "tests/support/ranks.h"

namespace ptrain::checkpoint {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class Reading : public ::testing::Test {
 protected:
  Reading() {
    const fs::path parent = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    std::string name = (parent / "ptrain-XXXXXX").string();
    root = mkdtemp(name.data());
    folder = root + "/step-00000001";
  }
  ~Reading() override { fs::remove_all(root); }

  static TensorItem item_of(const std::string& key, std::vector<float>& data,
                            std::vector<std::int64_t> shape, std::int64_t begin) {
    return {key, DType::kFloat32, std::move(shape), begin, begin + std::ssize(data), data.data()};
  }
  void save_one(std::vector<float>& data, std::vector<std::int64_t> shape) {
    const auto world = comm::make_single();
    save(folder, {{item_of("model.w", data, std::move(shape), 0)}, {}}, *world);
    world->close();
  }

  std::string root, folder;
};

TEST_F(Reading, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo((root + "/pipe").c_str(), 0600), 0);
  EXPECT_THROW(InFile(root + "/pipe"), EngineError);
}

// A number from a file of /proc/self that has one a line: "name: number".
std::int64_t from_proc(const std::string& file, const std::string& name) {
  std::ifstream lines("/proc/self/" + file);
  for (std::string word; lines >> word;)
    if (word == name + ":") {
      std::int64_t value = 0;
      lines >> value;
      return value;
    }
  return -1;
}

std::int64_t bytes_read() { return from_proc("io", "rchar"); }

TEST_F(Reading, EachRankReadsItsPartOfATensor) {
  constexpr int kRanks = 16;
  constexpr std::int64_t kRows = 2048, kColumns = 1000;
  std::vector<float> whole(kRows * kColumns);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<float>(i % 65521);
  save_one(whole, {kRows, kColumns});
  std::int64_t before = 0;
  tests::run_ranks(kRanks, [&](comm::Communicator& world) {
    const std::int64_t size = std::ssize(whole) / kRanks;
    const std::int64_t begin = size * world.rank();
    std::vector<float> part(static_cast<std::size_t>(size));
    const Source source(folder, world);
    world.barrier();
    if (world.rank() == 0) before = bytes_read();
    world.barrier();
    source.load({{item_of("model.w", part, {kRows, kColumns}, begin)}, {}});
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + begin));
  });
  const double wanted = static_cast<double>(whole.size() * sizeof(float));
  ASSERT_GT(before, 0);
  EXPECT_LE(static_cast<double>(bytes_read() - before), 1.1 * wanted);
}

// Opening checks every byte once, whatever the number of ranks.
TEST_F(Reading, RanksShareTheCheck) {
  std::vector<float> whole(12 << 20, 1.5f);  // three blocks of one file
  save_one(whole, {12 << 20});
  for (const int ranks : {1, 2, 5}) {
    const std::int64_t before = bytes_read();
    tests::run_ranks(ranks, [&](comm::Communicator& world) { const Source source(folder, world); });
    EXPECT_LE(bytes_read() - before, std::int64_t{49} << 20) << ranks;
  }
  std::fstream file(folder + "/__0_0.distcp", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(40 << 20);
  file.put('x');
  file.close();
  tests::run_ranks(
      2, [&](comm::Communicator& world) { EXPECT_THROW(Source(folder, world), EngineError); });
}

// The most that was resident since the last call.
std::int64_t peak_since_last() {
  const std::int64_t peak = from_proc("status", "VmHWM") << 10;
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak;
}

TEST_F(Reading, MemoryIsTheTensorAndABuffer) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  constexpr std::int64_t kSize = 16 << 20;
  std::vector<float> whole(kSize, 1.5f);
  save_one(whole, {kSize});
  std::vector<double> wider(kSize / 2, 0);  // what is converted passes through a buffer
  const auto world = comm::make_single();
  peak_since_last();
  const std::int64_t before = peak_since_last();
  const Source source(folder, *world);
  source.load({{item_of("model.w", whole, {kSize}, 0)}, {}});
  source.load({{{"model.w", DType::kFloat64, {kSize}, 0, kSize / 2, wider.data()}}, {}});
  EXPECT_LE(peak_since_last() - before, 20 << 20);
  EXPECT_EQ(wider.back(), 1.5);
  world->close();
}

// 5000 tensors in 200 files, with few more descriptors than the process has open.
TEST_F(Reading, OpensABoundedNumberOfFiles) {
  constexpr int kFiles = 200, kTensors = 25;
  const Publisher publisher(folder);
  publisher.prepare();
  std::vector<RankFile> written;
  std::vector<std::vector<float>> data;
  for (int rank = 0; rank < kFiles; ++rank) {
    Items items;
    for (int i = 0; i < kTensors; ++i) {
      auto& values = data.emplace_back(3, static_cast<float>(rank * kTensors + i));
      items.tensors.push_back(item_of("model." + std::to_string(data.size() - 1), values, {3}, 0));
    }
    written.push_back(write_rank_file(publisher.temporary(), items, rank, {}));
  }
  publisher.publish(std::move(written));
  const auto child = [&] {
    const rlimit limit{160, 160};
    setrlimit(RLIMIT_NOFILE, &limit);
    const auto world = comm::make_single();
    std::vector<std::vector<float>> found(data.size(), std::vector<float>(3));
    Items items;
    for (std::size_t i = 0; i < found.size(); ++i)
      items.tensors.push_back(item_of("model." + std::to_string(i), found[i], {3}, 0));
    try {
      Source(folder, *world).load(items);
    } catch (const EngineError& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    std::_Exit(found == data ? 0 : 1);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ptrain::checkpoint
