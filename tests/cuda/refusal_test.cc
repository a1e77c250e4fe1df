// The CUDA module opens on a machine without a GPU, and says what is missing.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

class Refusal : public RunFixture {
 protected:
  Refusal() : RunFixture(PTRAIN_SHIPPED_BINARY) {}
  void SetUp() override {
    RunFixture::SetUp();
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0)
      GTEST_SKIP() << "this machine has a GPU";
    write("cluster.yaml",
          "name: gpus\nnodes: [{name: here, cores: 2, memory_gib: 8, gpus: 2, gpu_memory_gib: "
          "8}]\n");
  }
};

TEST_F(Refusal, OfAPlanForGpusWhereThereAreNone) {
  EXPECT_EQ(run_recipe(), 3) << output_;
  EXPECT_TRUE(said("no GPU is visible here")) << output_;
  EXPECT_TRUE(said("nvidia-smi")) << output_;
  EXPECT_EQ(verdict().code, ExitCode::kEnvironment);
}

}  // namespace
}  // namespace ptrain
