#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/program/offload_plan.h"
#include "engine/base/engine_error.h"
#include "engine/probe/kernels.h"
#include "engine/probe/timing.h"
#include "engine/state/offload_store.h"

namespace ptrain::probe {
namespace {

constexpr std::int64_t kBytes = 16 << 20;  // of one rank: larger than most groups of a small model
constexpr int kRounds = 3;

std::unique_ptr<state::OffloadStore> make_store(int rank) {
  try {
    return state::make_file_store(".", rank, kBytes);
  } catch (const EngineError&) {
    return nullptr;  // a folder that cannot be written, or a full disk
  }
}

template <class Work>
double wall_seconds_of(comm::Communicator& world, Work work) {
  world.barrier();
  const double begin = wall_seconds();
  work();
  return slowest(world, wall_seconds() - begin);
}

}  // namespace

nlohmann::json disk_rates(comm::Communicator& world) {
  const auto store = make_store(world.rank());
  if (slowest(world, store == nullptr ? 1 : 0) > 0) return nullptr;
  std::vector<std::byte> memory(kBytes + program::kPageBytes);
  void* begin = memory.data();
  std::size_t room = memory.size();
  const std::span<std::byte> pages(
      static_cast<std::byte*>(std::align(program::kPageBytes, kBytes, begin, room)), kBytes);
  double read_s = std::numeric_limits<double>::max(), write_s = read_s;
  for (int round = 0; round < kRounds; ++round) {
    write_s = std::min(write_s, wall_seconds_of(world, [&] { store->write(0, pages); }));
    read_s = std::min(read_s, wall_seconds_of(world, [&] { store->read(0, pages); }));
  }
  return {{"read_bytes_per_s", kBytes / read_s}, {"write_bytes_per_s", kBytes / write_s}};
}

}  // namespace ptrain::probe
