#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/base/device.h"
#include "engine/base/engine_error.h"

namespace ptrain::device {
namespace {

// Whether the mapping of this process that holds the address asks for huge pages: "hg" among the
// VmFlags of proc_pid_smaps(5).
bool asks_for_huge_pages(const std::byte* address) {
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      inside = begin <= at && at < end;
    } else if (inside && line.starts_with("VmFlags:")) {
      return (line + ' ').find(" hg ") != std::string::npos;
    }
  }
  return false;
}

TEST(Device, AsksForHugePagesWhereTheyAreWhole) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage"))
    GTEST_SKIP() << "this kernel has no transparent huge pages";
  constexpr std::int64_t kHuge = 2 << 20;
  auto* memory = static_cast<std::byte*>(allocate(3 * kHuge - 64));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % kHuge, 0u);
  EXPECT_TRUE(asks_for_huge_pages(memory));
  EXPECT_TRUE(asks_for_huge_pages(memory + 2 * kHuge - 1));
  EXPECT_FALSE(asks_for_huge_pages(memory + 2 * kHuge));
  release(memory);
  auto* small = static_cast<std::byte*>(allocate(kHuge - 64));
  EXPECT_FALSE(asks_for_huge_pages(small));
  release(small);
}

TEST(Device, IsTheProcessorWhereNoGpuIsAskedFor) {
  EXPECT_FALSE(is_gpu());
  open(-1);
  void* memory = allocate(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0u);
  std::memset(memory, 1, 100);
  synchronize();
  release(memory);
}

TEST(Device, RefusesAGpuThatThisBuildCannotUse) {
  try {
    open(0);
    FAIL() << "no error";
  } catch (const EngineError& error) {
    EXPECT_EQ(error.error().code, ExitCode::kEnvironment);
    EXPECT_NE(error.error().hint.find("preset `cuda`"), std::string::npos);
  }
}

}  // namespace
}  // namespace ptrain::device
