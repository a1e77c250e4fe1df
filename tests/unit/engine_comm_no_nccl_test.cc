#include <gtest/gtest.h>

#include "engine/base/engine_error.h"
#include "engine/comm/nccl.h"

namespace ptrain::comm {
namespace {

TEST(NoNccl, IsAnErrorThatSaysWhatToDo) {
  try {
    make_nccl(nullptr, {});
    FAIL() << "no error";
  } catch (const EngineError& error) {
    EXPECT_EQ(error.error().code, ExitCode::kEnvironment);
    EXPECT_NE(error.error().hint.find("PTRAIN_CUDA"), std::string::npos);
  }
}

}  // namespace
}  // namespace ptrain::comm
