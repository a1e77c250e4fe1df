#include <gtest/gtest.h>

#include "launcher/cluster/file.h"

namespace ptrain::cluster {
namespace {

constexpr const char* kGood = R"(name: two
nodes:
  - {name: big, cores: 8, memory_gib: 16}
  - {name: small, count: 2, cores: 4, memory_gib: 0.5}
figures:
  matmul_flops_per_s: {float32: 9.0e+10, float64: 4.5e+10}
  memory_bytes_per_s: 8.0e+9
  all_gather: {latency_s: 2.0e-5, bytes_per_s: 1.5e+9}
  reduce_scatter: {latency_s: 3.0e-5, bytes_per_s: 1.0e+9}
)";

TEST(ClusterFile, ReadsEveryField) {
  const auto cluster = cluster_from_text(kGood, "c.yaml");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->name, "two");
  EXPECT_EQ(cluster->nodes,
            (std::vector<Node>{
                {"big", 8, 17179869184}, {"small-0", 4, 536870912}, {"small-1", 4, 536870912}}));
  EXPECT_FALSE(cluster->figures.assumed);
  EXPECT_EQ(cluster->figures.matmul(DType::kFloat32), 9e10);
  EXPECT_EQ(cluster->figures.matmul(DType::kFloat64), 4.5e10);
  EXPECT_EQ(cluster->figures.all_gather, (TransferCost{2e-5, 1.5e9}));
  EXPECT_EQ(cluster->figures.reduce_scatter, (TransferCost{3e-5, 1e9}));
  EXPECT_EQ(cluster->link, default_link());
}

TEST(ClusterFile, FiguresMayBeLeftOutAndAreThenAssumed) {
  const auto cluster =
      cluster_from_text("name: a\nnodes: [{name: n, cores: 2, memory_gib: 4}]\n", "c");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_TRUE(cluster->figures.assumed);
}

TEST(ClusterFile, HasNodesWithGpus) {
  const auto cluster = cluster_from_text(
      "name: a\nnodes: [{name: n, cores: 2, memory_gib: 4, gpus: 8, gpu_memory_gib: 80}]\n", "c");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->nodes, (std::vector<Node>{{"n", 2, 4294967296, 8, 85899345920}}));
  EXPECT_EQ(cluster->figures, default_gpu_figures());
  EXPECT_EQ(cluster->link, default_gpu_link());
}

struct Bad {
  const char* text;
  int line;
  const char* says;
};

TEST(ClusterFile, RefusesWithPlace) {
  const Bad cases[] = {
      {"name: a\nnodes: []\n", 1, "at least one node"},
      {"name: a\nnodes: [{name: n, cores: 2, memory_gib: 4}]\ncolour: red\n", 3, "'colour'"},
      {"name: a\nnodes:\n  - {name: n, cores: 2}\n", 3, "'memory_gib' is missing"},
      {"name: a\nnodes:\n  - {name: n, cores: 2.5, memory_gib: 1}\n", 3, "whole number"},
      {"name: a\nnodes:\n  - {name: n, cores: 0, memory_gib: 1}\n", 3, "above zero"},
      {"name: a\nnodes:\n  - {name: n, cores: .nan, memory_gib: 1}\n", 3, "above zero"},
      {"name: a\nname: b\nnodes: [{name: n, cores: 2, memory_gib: 4}]\n", 2,
       "duplicate key 'name'"},
      {"name: a\nnodes: [{name: n, cores: 2, memory_gib: 4, gpu: 8}]\n", 2, "'gpu'"},
      {"name: a\nnodes: [{name: n, cores: 2, memory_gib: 4, gpus: 8}]\n", 2,
       "'gpu_memory_gib' is missing"},
      {"name: a\nnodes: [{name: n, cores: 2, memory_gib: 4, gpu_memory_gib: 8}]\n", 2,
       "'gpus' is missing"},
      {"name: a\nnodes:\n  - {name: n, cores: 2, memory_gib: 4}\n  - {name: n, cores: 1, "
       "memory_gib: 4}\n",
       4, "a node 'n' is there already"},
      {"name: a\nnodes:\n  - {name: n-1, cores: 2, memory_gib: 4}\n  - {name: n, count: 2, cores: "
       "1, memory_gib: 4}\n",
       4, "a node 'n-1' is there already"},
      {"name: a\nnodes: [{name: &b n, cores: 2, memory_gib: 4}]\n", 2, "anchors"},
      {"name: a\nnodes: [{name: n\n", 3, ""},
      {"- 1\n", 1, "must be a mapping"},
      {"name: a\nnodes: [{name: n, cores: 2, memory_gib: 4}]\nfigures:\n  matmul_flops_per_s: "
       "{float32: fast}\n  all_gather: {latency_s: 1, bytes_per_s: 1}\n  reduce_scatter: {}\n",
       4, "/matmul_flops_per_s/float32 must be a number"},
      {"name: a\nnodes: [{name: n, cores: 2, memory_gib: 4}]\nfigures:\n  speed: 3\n", 4,
       "/speed is not known"},
      {"name: a\nnodes: [{name: n, cores: 2, memory_gib: 4}]\nfigures: 7\n", 3,
       "figures must be a mapping"},
      {"name: a\nnodes: [{name: n, count: 1e9, cores: 2, memory_gib: 4}]\n", 2, "at most"},
      {"name: a\nnodes:\n  - {name: n, count: 65536, cores: 2, memory_gib: 4}\n"
       "  - {name: m, cores: 2, memory_gib: 4}\n",
       4, "more than 65536 nodes in all"},
  };
  for (const Bad& bad : cases) {
    const auto cluster = cluster_from_text(bad.text, "c.yaml");
    ASSERT_FALSE(cluster) << bad.text;
    EXPECT_EQ(cluster.error().code, ExitCode::kUsage);
    EXPECT_EQ(cluster.error().place.file, "c.yaml");
    EXPECT_EQ(cluster.error().place.line, bad.line) << bad.text;
    EXPECT_NE(cluster.error().message.find(bad.says), std::string::npos) << cluster.error().message;
  }
}

TEST(ClusterFile, AMissingFileIsAUsageError) {
  const auto cluster = read_cluster("/nowhere/at/all.yaml");
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().code, ExitCode::kUsage);
}

}  // namespace
}  // namespace ptrain::cluster
