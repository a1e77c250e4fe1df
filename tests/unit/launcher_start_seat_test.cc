#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launcher/start/seat.h"

namespace ptrain::start {
namespace {

// A node whose topology and whose nvidia-smi are ours, and no more programs.
class OnANode : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ptrain-seat-XXXXXX";
    folder_ = ::mkdtemp(name);
    const std::string tool = folder_ + "/nvidia-smi";
    std::ofstream(tool) << "#!/bin/sh\n"
                           "echo '0, 00000000:11:00.0, GPU-a, 81559'\n"
                           "echo '1, 00000000:21:00.0, GPU-b, 81559'\n"
                           "echo '2, 00000000:51:00.0, GPU-c, 81559'\n"
                           "echo '3, 00000000:61:00.0, GPU-d, 81559'\n";
    std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
    path_ = std::getenv("PATH");
    ::setenv("PATH", folder_.c_str(), 1);
    const std::string source = std::getenv("PTRAIN_SOURCE_DIR");
    ::setenv("HWLOC_XMLFILE", (source + "/tests/fixtures/cluster/four_nics.xml").c_str(), 1);
    for (const char* one : kAll) ::unsetenv(one);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    ::unsetenv("HWLOC_XMLFILE");
    for (const char* one : kAll) ::unsetenv(one);
    std::filesystem::remove_all(folder_);
  }
  static constexpr const char* kAll[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                         "NCCL_SOCKET_IFNAME",   "OMPI_MCA_btl_tcp_if_include",
                                         "UCX_NET_DEVICES",      "OMPI_MCA_btl_tcp_if_exclude"};
  std::string folder_, path_;
};

TEST_F(OnANode, EachRankHasItsGpuAndTheNicBesideIt) {
  EXPECT_EQ(to_text(seat_here({0, 2, 0})), "GPU 0 (0000:11:00.0), NIC mlx5_0");
  EXPECT_EQ(to_text(seat_here({3, 2, 3})), "GPU 3 (0000:61:00.0), NIC mlx5_3");
}

// A subset that is handed down: ranks count within it.
TEST_F(OnANode, VisibleGpusAreCountedInTheirOrder) {
  ::setenv("CUDA_VISIBLE_DEVICES", "3,GPU-b", 1);
  EXPECT_EQ(to_text(seat_here({0, 2, 0})), "GPU 3 (0000:61:00.0), NIC mlx5_3");
  EXPECT_EQ(to_text(seat_here({1, 2, 1})), "GPU 1 (0000:21:00.0), NIC mlx5_1");
  EXPECT_EQ(to_text(seat_here({2, 2, 2})), "GPU 2, NICs mlx5_0, mlx5_1, mlx5_2, mlx5_3");
}

TEST_F(OnANode, RanksOnCoresHaveTheNicsOfTheirSocket) {
  EXPECT_EQ(to_text(seat_here({0, 4, -1})), "NICs mlx5_0, mlx5_1");
  EXPECT_EQ(to_text(seat_here({2, 4, -1})), "NICs mlx5_2, mlx5_3");
  EXPECT_FALSE(seat_here({0, 24, -1}).nics_differ);
}

TEST_F(OnANode, LibrariesAreToldByVariables) {
  EXPECT_EQ(variables_of(seat_here({1, 2, 1}), "ib0"),
            (Variables{{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
                       {"NCCL_SOCKET_IFNAME", "=ib0"},
                       {"OMPI_MCA_btl_tcp_if_include", "ib0"},
                       {"UCX_NET_DEVICES", "mlx5_1:1"}}));
  EXPECT_EQ(variables_of(seat_here({2, 4, -1}), "eth0"),
            (Variables{{"OMPI_MCA_btl_tcp_if_include", "eth0"},
                       {"UCX_NET_DEVICES", "mlx5_2:1,mlx5_3:1"}}));
  EXPECT_EQ(variables_of(seat_here({0, 24, -1}), "eth0"),  // no NIC is nearer than others
            (Variables{{"OMPI_MCA_btl_tcp_if_include", "eth0"}}));
  EXPECT_EQ(variables_of(seat_here({0, 4, -1}), ""), Variables{});  // no other node
}

TEST_F(OnANode, WhatTheUserHasSetStays) {
  ::setenv("UCX_NET_DEVICES", "mine", 1);
  ::setenv("OMPI_MCA_btl_tcp_if_exclude", "docker0", 1);
  const Variables wanted{{"UCX_NET_DEVICES", "mlx5_1:1"},
                         {"OMPI_MCA_btl_tcp_if_include", "eth0"},
                         {"NCCL_SOCKET_IFNAME", "=eth0"}};
  EXPECT_EQ(set_variables(wanted), (Variables{{"NCCL_SOCKET_IFNAME", "=eth0"}}));
  EXPECT_STREQ(std::getenv("UCX_NET_DEVICES"), "mine");
  EXPECT_EQ(std::getenv("OMPI_MCA_btl_tcp_if_include"), nullptr);
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "=eth0");
}

}  // namespace
}  // namespace ptrain::start
