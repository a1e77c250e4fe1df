#include "engine/probe/probe.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/kernels/matmul.h"

namespace ptrain::probe {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsEach = 0.12;
constexpr int kLeastRounds = 3;
constexpr int kCollectiveRepeats = 4;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The worst value of all ranks: a collective step waits for the slowest.
double slowest(comm::Communicator& world, double seconds) {
  world
      .all_reduce(reinterpret_cast<std::byte*>(&seconds), DType::kFloat64, 1, comm::ReduceOp::kMax)
      ->wait();
  return seconds;
}

// Best seconds of work() on this rank, in the presence of the others: figures are kept for long, so
// a moment in which the machine had other work must not count.
template <class Work>
double best_seconds(comm::Communicator& world, Work work) {
  work();
  world.barrier();
  double best = std::numeric_limits<double>::max();
  const auto start = Clock::now();
  for (int round = 0; round < kLeastRounds || seconds_since(start) < kSecondsEach; ++round) {
    const auto begin = Clock::now();
    work();
    best = std::min(best, seconds_since(begin));
  }
  return best;
}

// The same for a collective: means of a few rounds, as many on every rank, and the best mean.
template <class Work>
double best_collective_seconds(comm::Communicator& world, int num_rounds, Work work) {
  work();
  double best = std::numeric_limits<double>::max();
  for (int repeat = 0; repeat < kCollectiveRepeats; ++repeat) {
    world.barrier();
    const auto start = Clock::now();
    for (int round = 0; round < num_rounds; ++round) work();
    best = std::min(best, slowest(world, seconds_since(start) / num_rounds));
  }
  return best;
}

template <class T>
double matmul_flops_per_s(comm::Communicator& world, DType dtype) {
  constexpr std::int64_t kRows = 512, kInner = 512, kCols = 1024;
  std::vector<T> a(kRows * kInner, T(0.5)), b(kInner * kCols, T(0.25)), c(kRows * kCols);
  const double seconds = slowest(world, best_seconds(world, [&] {
                                   kernels::matmul(contiguous(a.data(), dtype, kRows, kInner),
                                                   contiguous(b.data(), dtype, kInner, kCols),
                                                   contiguous(c.data(), dtype, kRows, kCols));
                                 }));
  return 2.0 * kRows * kInner * kCols / seconds;
}

// Reads two arrays and writes a third, together larger than any cache of one core.
double memory_bytes_per_s(comm::Communicator& world) {
  constexpr std::size_t kFloats = std::size_t{4} << 20;
  std::vector<float> a(kFloats, 1), b(kFloats, 2), c(kFloats);
  const double seconds = slowest(world, best_seconds(world, [&] {
                                   for (std::size_t i = 0; i < kFloats; ++i)
                                     c[i] = a[i] + 0.5F * b[i];
                                 }));
  return 3.0 * kFloats * sizeof(float) / seconds;
}

struct Runs {
  std::vector<std::int64_t> offsets, counts;
};

Runs equal_runs(int num_ranks, std::int64_t each) {
  Runs runs;
  for (int rank = 0; rank < num_ranks; ++rank) {
    runs.offsets.push_back(rank * each);
    runs.counts.push_back(each);
  }
  return runs;
}

// Latency a peer and bytes a second of a collective, from a small and a large buffer.
// run(buffer, runs) makes one.
template <class Run>
nlohmann::json transfer(comm::Communicator& world, Run run) {
  constexpr std::int64_t kSmall = 64, kLarge = std::int64_t{1} << 20;
  constexpr double kQuickest = 1e-9;
  std::vector<float> buffer(static_cast<std::size_t>(kLarge * world.size()), 1.0F);
  auto* bytes = reinterpret_cast<std::byte*>(buffer.data());
  const auto time = [&](std::int64_t each, int num_rounds) {
    const Runs runs = equal_runs(world.size(), each);
    return best_collective_seconds(world, num_rounds, [&] { run(bytes, runs); });
  };
  const double small = time(kSmall, 30);
  const double large = time(kLarge, 3);
  const double peers = std::max(1, world.size() - 1);
  const double moved = peers * static_cast<double>((kLarge - kSmall) * 4);
  return {{"latency_s", std::max(kQuickest, small / peers)},
          {"bytes_per_s", moved / std::max(kQuickest, large - small)}};
}

}  // namespace

nlohmann::json run_probe(comm::Communicator& world) {
  const auto gather = [&](std::byte* bytes, const Runs& runs) {
    world.all_gather_v(bytes, DType::kFloat32, runs.offsets, runs.counts)->wait();
  };
  const auto reduce = [&](std::byte* bytes, const Runs& runs) {
    world.reduce_scatter_v(bytes, DType::kFloat32, runs.offsets, runs.counts)->wait();
  };
  return {{"version", 1},
          {"num_ranks", world.size()},
          {"matmul_flops_per_s",
           {{"float32", matmul_flops_per_s<float>(world, DType::kFloat32)},
            {"float64", matmul_flops_per_s<double>(world, DType::kFloat64)}}},
          {"memory_bytes_per_s", memory_bytes_per_s(world)},
          {"all_gather", transfer(world, gather)},
          {"reduce_scatter", transfer(world, reduce)}};
}

}  // namespace ptrain::probe
