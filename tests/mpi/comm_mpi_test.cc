// Run by mpirun on a few ranks. `battery`: what every backend must do, and what only MPI has.
// `bench`: prints the times of large collectives. `late`: rank 1 misses a barrier, so the job ends
// with a time-out of the others.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/comm/bootstrap_pmix.h"
#include "engine/comm/window.h"
#include "tests/support/comm_battery.h"

namespace ptrain {
namespace {

using comm::Communicator;

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

void check_identity(const comm::Identity& identity, const Communicator& world) {
  require(identity.rank == world.rank() && identity.size == world.size(), "PMIx and MPI agree");
  require(identity.local_size == identity.size, "all on this node");
  require(identity.local_rank == identity.rank, "all on this node, in order");
  require(!identity.node.empty(), "the node has a name");
}

template <class F>
void time(Communicator& world, const char* what, F call) {
  std::vector<double> ms;
  for (int repeat = 0; repeat < 15; ++repeat) {
    world.barrier();
    const auto begin = std::chrono::steady_clock::now();
    call();
    const auto taken = std::chrono::steady_clock::now() - begin;
    ms.push_back(std::chrono::duration<double, std::milli>(taken).count());
  }
  std::ranges::sort(ms);
  if (world.rank() == 0)
    fmt::print("{:18} {} ranks: median {:.2f} ms, least {:.2f}\n", what, world.size(), ms[7],
               ms[0]);
}

void bench(Communicator& world) {
  constexpr std::int64_t kCount = 1 << 20;  // 4 MiB of float
  std::vector<float> values(kCount, 1.0F);
  auto* buffer = reinterpret_cast<std::byte*>(values.data());
  std::vector<std::int64_t> offsets, counts;
  for (std::int64_t rank = 0; rank < world.size(); ++rank) {
    counts.push_back(kCount / world.size());
    offsets.push_back(rank * counts[0]);
  }
  const auto dtype = DType::kFloat32;
  time(world, "all_gather_v", [&] { world.all_gather_v(buffer, dtype, offsets, counts)->wait(); });
  time(world, "reduce_scatter_v",
       [&] { world.reduce_scatter_v(buffer, dtype, offsets, counts)->wait(); });
  time(world, "all_reduce",
       [&] { world.all_reduce(buffer, dtype, kCount, comm::ReduceOp::kSum)->wait(); });
  time(world, "all_reduce 4 B",
       [&] { world.all_reduce(buffer, dtype, 1, comm::ReduceOp::kSum)->wait(); });
  const auto window = world.make_window(kCount * 4, 1);
  std::vector<int> all(counts.size());
  std::iota(all.begin(), all.end(), 0);
  const auto rank = static_cast<std::size_t>(world.rank());
  std::byte* own = window->segment(world.rank());
  std::memset(own, 0, kCount * 4);
  std::uint64_t epoch = 0;
  time(world, "window reduce", [&] {
    window->publish(0, ++epoch);
    window->wait(0, epoch);
    comm::reduce_from_window(*window, all, {dtype, offsets[rank] * 4, counts[rank]},
                             own + offsets[rank] * 4);
  });
  window->close();
}

void battery(Communicator& world) {
  for (const tests::CommCheck& check : tests::comm_battery()) {
    if (world.rank() == 0) fmt::print("{}\n", check.name);
    check.body(world);
    world.barrier();
  }
}

void late(Communicator& world) {
  const auto outer = world.split(0, -world.rank(), "outer");  // its rank 1 is not the world's
  if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(30));
  outer->barrier();
}

comm::MpiOptions options_for(std::string_view mode) {
  if (mode == "bench") return {};
  // The battery's longest pieces travel in many messages.
  return {.time_limit_s = mode == "late" ? 0.3 : 60, .message_bytes = 1000};
}

void run(std::string_view mode) {
  const comm::Identity identity = comm::identify();
  const auto world = comm::make_mpi(options_for(mode));
  try {
    check_identity(identity, *world);
    if (mode == "bench") bench(*world);
    if (mode == "battery") battery(*world);
    if (mode == "late") late(*world);
    world->close();
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", identity.rank, error.what());
    world->abort(1);
  }
  comm::leave();
}

}  // namespace
}  // namespace ptrain

int main(int argc, char** argv) {
  try {
    ptrain::run(argc > 1 ? argv[1] : "battery");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
