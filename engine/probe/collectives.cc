#include "engine/probe/collectives.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "engine/comm/window.h"
#include "engine/probe/timing.h"

namespace ptrain::probe {

namespace {

constexpr std::int64_t kSmall = 64, kLarge = std::int64_t{1} << 20;  // floats of one rank
constexpr double kQuickest_s = 1e-9;

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

// From seconds(floats of one rank's run, rounds) of a small and a large run.
template <class Seconds>
nlohmann::json cost_from(const comm::Communicator& world, Seconds seconds) {
  const double small = seconds(kSmall, 30);
  const double large = seconds(kLarge, 3);
  const double peers = std::max(1, world.size() - 1);
  const double moved = peers * static_cast<double>((kLarge - kSmall) * 4);
  return {{"latency_s", std::max(kQuickest_s, small / peers)},
          {"bytes_per_s", moved / std::max(kQuickest_s, large - small)}};
}

// run(buffer, runs) makes one collective.
template <class Run>
nlohmann::json collective_cost(comm::Communicator& world, Run run) {
  std::vector<float> buffer(static_cast<std::size_t>(kLarge * world.size()), 1.0F);
  auto* bytes = reinterpret_cast<std::byte*>(buffer.data());
  return cost_from(world, [&](std::int64_t each, int num_rounds) {
    const Runs runs = equal_runs(world.size(), each);
    return best_collective_seconds(world, num_rounds, [&] { run(bytes, runs); });
  });
}

}  // namespace

nlohmann::json all_gather_cost(comm::Communicator& world) {
  return collective_cost(world, [&](std::byte* bytes, const Runs& runs) {
    world.all_gather_v(bytes, DType::kFloat32, runs.offsets, runs.counts)->wait();
  });
}

nlohmann::json reduce_scatter_cost(comm::Communicator& world) {
  return collective_cost(world, [&](std::byte* bytes, const Runs& runs) {
    world.reduce_scatter_v(bytes, DType::kFloat32, runs.offsets, runs.counts)->wait();
  });
}

nlohmann::json window_cost(comm::Communicator& world) {
  const auto window = world.make_window(kLarge * world.size() * 4, 1);
  if (!window) return nullptr;
  std::byte* own = window->segment(window->rank());
  std::fill_n(reinterpret_cast<float*>(own), kLarge * world.size(), 1.0F);
  std::vector<int> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::uint64_t epoch = 0;
  const auto meet = [&] {
    window->publish(0, ++epoch);
    window->wait(0, epoch);
  };
  auto cost = cost_from(world, [&](std::int64_t each, int num_rounds) {
    const std::int64_t offset = window->rank() * each * 4;
    return best_collective_seconds(world, num_rounds, [&] {
      meet();
      comm::reduce_from_window(*window, ranks, {DType::kFloat32, offset, each}, own + offset);
    });
  });
  window->close();
  return cost;
}

}  // namespace ptrain::probe
