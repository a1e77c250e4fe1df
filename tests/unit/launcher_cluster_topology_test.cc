// A node with two NICs on each of two sockets, one of them beside each GPU, and a third socket
// (tests/fixtures/cluster/make_topology.py).
#include <gtest/gtest.h>

#include <cstdlib>

#include "launcher/cluster/topology.h"

namespace ptrain::cluster {
namespace {

using Names = std::vector<std::string>;

class OfAFile : public testing::Test {
 protected:
  static Topology load(Topology::Look look) {
    const std::string source = std::getenv("PTRAIN_SOURCE_DIR");
    ::setenv("HWLOC_XMLFILE", (source + "/tests/fixtures/cluster/four_nics.xml").c_str(), 1);
    auto topology = Topology::find(look);
    ::unsetenv("HWLOC_XMLFILE");
    EXPECT_TRUE(topology);
    return std::move(*topology);
  }
  const Topology topology_ = load(Topology::Look::kDevices);
  const Names all_{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"};
};

TEST_F(OfAFile, HasItsCoresAndDevices) {
  EXPECT_EQ(topology_.usable_cores(), 24);
  EXPECT_EQ(topology_.memory_bytes(), std::int64_t{3} << 36);
  EXPECT_EQ(topology_.nics(), all_);
  EXPECT_EQ(topology_.num_nvidia_gpus(), 4);
  EXPECT_EQ(load(Topology::Look::kCores).num_nvidia_gpus(), 0);
  EXPECT_EQ(load(Topology::Look::kCores).nics(), Names{});
}

TEST_F(OfAFile, EachGpuHasTheNicOnItsSwitch) {
  EXPECT_EQ(topology_.nics_near_device("0000:11:00.0"), Names{"mlx5_0"});
  EXPECT_EQ(topology_.nics_near_device("0000:21:00.0"), Names{"mlx5_1"});
  EXPECT_EQ(topology_.nics_near_device("0000:51:00.0"), Names{"mlx5_2"});
  EXPECT_EQ(topology_.nics_near_device("0000:61:00.0"), Names{"mlx5_3"});
  EXPECT_EQ(topology_.nics_near_device("0000:99:00.0"), all_);
  EXPECT_EQ(topology_.nics_near_device("nonsense"), all_);
}

TEST_F(OfAFile, CoresHaveTheNicsOfTheirSocket) {
  EXPECT_EQ(topology_.nics_near_cores(0, 1), (Names{"mlx5_0", "mlx5_1"}));
  EXPECT_EQ(topology_.nics_near_cores(7, 1), (Names{"mlx5_0", "mlx5_1"}));
  EXPECT_EQ(topology_.nics_near_cores(8, 8), (Names{"mlx5_2", "mlx5_3"}));
  EXPECT_EQ(topology_.nics_near_cores(4, 8), all_);    // of two sockets
  EXPECT_EQ(topology_.nics_near_cores(16, 4), all_);   // of the one that has none
  EXPECT_EQ(topology_.nics_near_cores(500, 4), all_);  // of none
}

}  // namespace
}  // namespace ptrain::cluster
