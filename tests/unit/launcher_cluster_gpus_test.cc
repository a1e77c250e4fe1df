#include <gtest/gtest.h>

#include "launcher/cluster/gpus.h"

namespace ptrain::cluster {
namespace {

constexpr std::int64_t kMib = 1 << 20;

// As nvidia-smi prints them.
const char* const kTwo =
    "0, 00000000:3B:00.0, GPU-5d1f, 81559\n"
    "1, 00000000:D8:00.0, GPU-77aa, 40960\n";

std::vector<int> numbers(const char* visible) {
  std::vector<int> out;
  for (const auto& gpu : visible_gpus(gpus_from_nvidia_smi(kTwo), visible))
    out.push_back(gpu.number);
  return out;
}

TEST(Gpus, AreThoseThatTheDriverLists) {
  EXPECT_EQ(gpus_from_nvidia_smi(kTwo),
            (std::vector<Gpu>{{0, "0000:3b:00.0", "GPU-5d1f", 81559 * kMib},
                              {1, "0000:d8:00.0", "GPU-77aa", 40960 * kMib}}));
  EXPECT_TRUE(gpus_from_nvidia_smi("No devices were found\n").empty());
  EXPECT_TRUE(gpus_from_nvidia_smi("").empty());
}

// CUDA_VISIBLE_DEVICES as CUDA's programming guide has it.
TEST(Gpus, AreThoseThatTheProcessMaySeeInItsOrder) {
  using Numbers = std::vector<int>;
  EXPECT_EQ(numbers(nullptr), (Numbers{0, 1}));
  EXPECT_EQ(numbers("1"), Numbers{1});
  EXPECT_EQ(numbers("1,0"), (Numbers{1, 0}));
  EXPECT_EQ(numbers("GPU-77,0"), (Numbers{1, 0}));
  EXPECT_EQ(numbers("0,7,1"), Numbers{0});  // what follows one that is not there is not seen
  for (const char* none : {"", "-1", "-1,0", "none"}) EXPECT_EQ(numbers(none), Numbers{}) << none;
}

}  // namespace
}  // namespace ptrain::cluster
