#include "engine/train/same_steps.h"

#include <fmt/format.h>

#include <array>

#include "engine/base/engine_error.h"

namespace ptrain::train {

void check_same_steps(comm::Communicator& world, std::int64_t num_left) {
  // The most, and the least with its sign turned; exact up to 2^53.
  const auto mine = static_cast<double>(num_left);
  std::array<double, 2> ends{mine, -mine};
  world
      .all_reduce(reinterpret_cast<std::byte*>(ends.data()), DType::kFloat64, std::ssize(ends),
                  comm::ReduceOp::kMax)
      ->wait();
  if (ends[0] == -ends[1]) return;
  throw EngineError(ExitCode::kEnvironment,
                    fmt::format("rank {} has {} steps left in this shape, some ranks {}, others {}",
                                world.rank(), num_left, -ends[1], ends[0]),
                    "they have read different plans or checkpoints: look at the file system of the "
                    "run directory");
}

}  // namespace ptrain::train
