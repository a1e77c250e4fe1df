#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/probe/probe.h"
#include "launcher/cluster/figures_json.h"

namespace ptrain::probe {
namespace {

// Ranks as threads; every rank's result.
std::vector<nlohmann::json> probe_with(int num_ranks) {
  auto world = comm::make_threads(num_ranks);
  std::vector<nlohmann::json> results(static_cast<std::size_t>(num_ranks));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < results.size(); ++rank)
    threads.emplace_back([&, rank] {
      results[rank] = run_probe(*world[rank]);
      world[rank]->close();
    });
  for (auto& thread : threads) thread.join();
  return results;
}

// As launcher/cluster/probe.cc takes it off.
nlohmann::json without_header(nlohmann::json probe) {
  EXPECT_EQ(probe.at("version"), 4);
  probe.erase("version");
  probe.erase("num_ranks");
  return probe;
}

TEST(Probe, WritesWhatThePlannerReads) {
  const auto start = std::chrono::steady_clock::now();
  const auto results = probe_with(2);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(results[0].at("num_ranks"), 2);
  const auto figures = cluster::figures_from_json(without_header(results[0]));
  ASSERT_TRUE(figures) << figures.error().message;
  // Any processor that runs this multiplies faster than 0.1 and slower than 10,000 GFLOP/s a core,
  // and singles faster than doubles, which take twice the bytes.
  EXPECT_GT(figures->matmul_float32, 1e8);
  EXPECT_LT(figures->matmul_float32, 1e13);
  EXPECT_GT(figures->matmul_float32, 0.8 * figures->matmul_float64);
  // Libraries without units for bfloat16 convert first and multiply floats.
  EXPECT_GT(figures->matmul_bfloat16, 0.1 * figures->matmul_float32);
  EXPECT_LT(figures->matmul_bfloat16, 1e13);
  EXPECT_EQ(figures->matmul_shares_bfloat16.size(), figures->matmul_shares.size());
  EXPECT_GT(figures->memory_bytes_per_s, 1e8);
  EXPECT_LT(figures->memory_bytes_per_s, 1e13);
  EXPECT_LT(took.count(), 20) << "a probe should take about a second";
}

TEST(Probe, EveryRankReturnsTheSame) {
  const auto results = probe_with(3);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Probe, OneRankAloneHasCollectivesToo) {
  const auto world = comm::make_single();
  const auto figures = cluster::figures_from_json(without_header(run_probe(*world)));
  EXPECT_TRUE(figures) << figures.error().message;
  world->close();
}

}  // namespace
}  // namespace ptrain::probe
