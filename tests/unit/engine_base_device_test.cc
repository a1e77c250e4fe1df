#include <gtest/gtest.h>

#include <cstring>

#include "engine/base/device.h"
#include "engine/base/engine_error.h"

namespace ptrain::device {
namespace {

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
