#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "launcher/cluster/host.h"

namespace ptrain::cluster {
namespace {

TEST(Limits, ReadCgroupFiles) {
  EXPECT_EQ(cores_from_cpu_max("200000 100000\n"), 2.0);
  EXPECT_EQ(cores_from_cpu_max("50000 100000"), 0.5);
  EXPECT_EQ(cores_from_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(cores_from_cpu_max(""), std::nullopt);
  EXPECT_EQ(bytes_from_memory_max("1073741824\n"), 1073741824);
  EXPECT_EQ(bytes_from_memory_max("max\n"), std::nullopt);
  EXPECT_EQ(bytes_from_memory_max(""), std::nullopt);
}

TEST(Host, IsWithinWhatTheSystemSays) {
  const auto host = this_host();
  ASSERT_TRUE(host);
  ASSERT_EQ(host->nodes.size(), 1u);
  EXPECT_GE(host->nodes[0].num_cores, 1);
  EXPECT_LE(host->nodes[0].num_cores, sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_GT(host->nodes[0].memory_bytes, 64LL << 20);
  EXPECT_LE(host->nodes[0].memory_bytes, sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

TEST(Host, HonoursTheAffinityOfTheProcess) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const auto host = this_host();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  ASSERT_TRUE(host);
  EXPECT_EQ(host->nodes[0].num_cores, 1);
}

}  // namespace
}  // namespace ptrain::cluster
