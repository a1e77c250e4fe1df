// The file in which offloaded state waits.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/program/offload_plan.h"
#include "engine/base/engine_error.h"
#include "engine/state/offload_store.h"

namespace ptrain::state {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPage = program::kPageBytes;

class Store : public testing::Test {
 protected:
  Store() { PT_CHECK(::mkdtemp(root_.data()) != nullptr); }
  ~Store() override { fs::remove_all(root_); }

  std::string folder() const { return root_ + "/offload"; }
  // Memory that begins on a page.
  static std::span<std::byte> pages(std::vector<std::byte>& memory, std::int64_t count) {
    memory.resize(static_cast<std::size_t>((count + 1) * kPage));
    void* begin = memory.data();
    std::size_t room = memory.size();
    const auto bytes = static_cast<std::size_t>(count * kPage);
    return {static_cast<std::byte*>(std::align(kPage, bytes, begin, room)), bytes};
  }
  static std::string error_of(const std::function<void()>& work, ExitCode code) {
    try {
      work();
    } catch (const EngineError& error) {
      EXPECT_EQ(error.error().code, code);
      return std::string(error.what()) + " | " + error.error().hint;
    }
    return "";
  }
  // The file has no name; the process knows it by its descriptor.
  static fs::path open_file() {
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const auto target = fs::read_symlink(entry, gone).string();
      if (target.find(".ptrain-offload-") != std::string::npos) return entry.path();
    }
    return {};
  }

  std::string root_ = "/tmp/ptrain-store-XXXXXX";
};

TEST_F(Store, KeepsWhatIsWrittenAndIsZeroElsewhere) {
  const auto store = make_file_store(folder(), 3, 5 * kPage);
  std::vector<std::byte> mine, theirs;
  const auto from = pages(mine, 2), to = pages(theirs, 5);
  std::fill(from.begin(), from.end(), std::byte{7});
  store->write(2 * kPage, from);
  std::fill(to.begin(), to.end(), std::byte{1});
  store->read(0, to);
  for (std::int64_t i = 0; i < 5 * kPage; ++i)
    ASSERT_EQ(to[static_cast<std::size_t>(i)], std::byte(i >= 2 * kPage && i < 4 * kPage ? 7 : 0))
        << i;
}

TEST_F(Store, LeavesNothingAndIsTheOwnersAlone) {
  const auto store = make_file_store(folder(), 0, kPage);
  EXPECT_TRUE(fs::is_empty(folder()));
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms::owner_all);
  struct stat info {};
  ASSERT_EQ(::stat(open_file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(info.st_nlink, 0u);
  EXPECT_GE(info.st_blocks * 512, kPage) << "no room is reserved";
}

// Of a process that was killed at the wrong moment; and a folder on another disk.
TEST_F(Store, ReplacesAStaleFileAndFollowsALink) {
  fs::create_directory(root_ + "/disk");
  std::ofstream(root_ + "/disk/.ptrain-offload-0") << "stale";
  fs::create_symlink(root_ + "/disk", folder());
  const auto store = make_file_store(folder(), 0, kPage);
  std::vector<std::byte> memory;
  const auto to = pages(memory, 1);
  store->read(0, to);
  EXPECT_TRUE(std::all_of(to.begin(), to.end(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(fs::is_empty(root_ + "/disk"));
}

TEST_F(Store, WithoutRoomIsRefusedAtOnce) {
  const auto said = error_of([&] { make_file_store(folder(), 0, std::int64_t{1} << 62); },
                             ExitCode::kEnvironment);
  EXPECT_NE(said.find("cannot reserve 4611686018427387904 bytes"), std::string::npos) << said;
  EXPECT_TRUE(fs::is_empty(folder()));
}

TEST_F(Store, WithoutAFolderIsRefused) {
  const auto said =
      error_of([&] { make_file_store(root_ + "/no/such", 0, kPage); }, ExitCode::kEnvironment);
  EXPECT_NE(said.find("No such file"), std::string::npos) << said;
  EXPECT_NE(said.find("or set parallel.offload: none"), std::string::npos) << said;
}

TEST_F(Store, SaysWhereALinkThatLeadsNowhereLeads) {
  fs::create_symlink("/no/such/disk", folder());
  const auto said = error_of([&] { make_file_store(folder(), 0, kPage); }, ExitCode::kEnvironment);
  EXPECT_NE(said.find(folder() + " is a link to /no/such/disk"), std::string::npos) << said;
  EXPECT_NE(said.find("a folder where you may write"), std::string::npos) << said;
}

TEST_F(Store, NamesADiskThatLosesData) {
  const auto store = make_file_store(folder(), 0, 4 * kPage);
  fs::resize_file(open_file(), 0);
  std::vector<std::byte> memory;
  const auto to = pages(memory, 1);
  const auto said = error_of([&] { store->read(kPage, to); }, ExitCode::kUnusable);
  EXPECT_NE(said.find("cannot read offloaded optimizer state in " + folder()), std::string::npos)
      << said;
}

}  // namespace
}  // namespace ptrain::state
