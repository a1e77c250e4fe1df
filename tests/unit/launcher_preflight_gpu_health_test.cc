#include <gtest/gtest.h>

#include "launcher/preflight/gpu_health.h"

namespace ptrain::preflight {
namespace {

// Lines as nvidia-smi writes them.
TEST(GpuHealth, HealthyOnesAreNotSpokenOf) {
  EXPECT_EQ(gpu_complaint_in("0, 0, No\n1, 0, No\n"), "");
  EXPECT_EQ(gpu_complaint_in("0, [N/A], [N/A]\n"), "");
  EXPECT_EQ(gpu_complaint_in("0, 0, [N/A]\r\n"), "");
  EXPECT_EQ(gpu_complaint_in(""), "");
}

TEST(GpuHealth, SickOnesAreNamed) {
  EXPECT_EQ(gpu_complaint_in("0, 0, No\n1, 3, No\n2, 0, Yes\n"),
            "GPU 1 has had 3 uncorrected memory errors, GPU 2 waits for a reset to retire memory");
  EXPECT_EQ(gpu_complaint_in("0, [Unknown Error], [Unknown Error]\n"),
            "GPU 0 does not answer ([Unknown Error])");
  EXPECT_NE(gpu_complaint_in("Unable to determine the device handle for GPU0\n"), "");
}

}  // namespace
}  // namespace ptrain::preflight
