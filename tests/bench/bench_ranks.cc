// Training steps timed as tokens per CPU second over all ranks. Run by mpirun with
// OMP_NUM_THREADS=1. Arguments: window | messages | silent, of a fully sharded model (silent: the
// same step with communication left out), or tensor (layers shared by all ranks); then layers
// hidden heads kv_heads ffn vocabulary, rows of all ranks, sequence, steps.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "core/mesh/part.h"
#include "core/program/compile.h"
#include "engine/base/engine_error.h"
#include "engine/comm/bootstrap_pmix.h"
#include "engine/execute/executor.h"
#include "engine/execute/groups.h"
#include "engine/state/init.h"
#include "tests/bench/shape.h"
#include "tests/bench/silent.h"

namespace ptrain {
namespace {

// Of this process so far: CPU seconds, page faults; then wall seconds.
std::array<double, 3> used() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<double>(usage.ru_minflt),
          std::chrono::duration<double>(now).count()};
}

void initialise(execute::Executor& executor, const model::Architecture& architecture) {
  for (auto& group : executor.groups())
    for (const auto& run : group.runs())
      state::initial_values(architecture.parameters[static_cast<std::size_t>(run.parameter)],
                            architecture, 1, run.begin, run.end, group.master(run));
  state::publish_masters(executor.groups());
}

void report(comm::Communicator& world, const bench::Shape& shape,
            std::vector<std::array<double, 3>> steps) {
  const auto count = static_cast<std::int64_t>(3 * steps.size());
  world
      .all_reduce(reinterpret_cast<std::byte*>(steps.data()), DType::kFloat64, count,
                  comm::ReduceOp::kSum)
      ->wait();
  if (world.rank() != 0) return;
  const auto median = [&](std::size_t what) {
    std::ranges::sort(steps, {}, [&](const auto& step) { return step[what]; });
    return steps[steps.size() / 2][what];
  };
  const auto tokens = static_cast<double>(shape.rows * shape.sequence);
  fmt::print(
      R"({{"tok_cpu_s": {:.0f}, "step_cpu_ms": {:.1f}, "step_ms": {:.1f}, "faults": {:.0f}}})"
      "\n",
      tokens / median(0), 1e3 * median(0), 1e3 * median(2) / world.size(), median(1));
}

mesh::Layout layout_of(std::string_view how, int num_ranks, const bench::Shape& shape) {
  mesh::Layout layout;
  if (how == "tensor") {
    layout.tp = num_ranks;
  } else {
    layout.shard = num_ranks;
    layout.zero = 3;
    layout.shared_window = how == "window";
  }
  layout.micro_batch = shape.rows / layout.num_data_ranks();
  return layout;
}

// world: of the step; all: which measures.
void run(comm::Communicator& world, comm::Communicator& all, const mesh::Layout& layout,
         const bench::Shape& shape) {
  const auto architecture =
      value_or_throw(mesh::part_of(architecture_of(shape), layout, world.rank()));
  const auto program =
      value_or_throw(program::compile({architecture, layout, "bench"}, world.rank()));
  execute::Groups groups(world, layout, architecture);
  Arena arena;
  execute::Executor executor(architecture, layout, groups.communicators(), arena);
  initialise(executor, architecture);
  const data::MicroBatch batch = random_batch(
      shape, layout.micro_batch,
      static_cast<unsigned>(mesh::coordinates_of(layout, world.rank()).data_rank(layout)));
  execute::StepSettings settings;
  settings.learning_rate = 1e-4;
  std::vector<std::array<double, 3>> steps;
  for (settings.step = 1; settings.step <= shape.steps + 2; ++settings.step) {  // two to warm up
    const auto before = used();
    executor.train(program, {&batch, 1}, settings);
    auto after = used();
    for (std::size_t i = 0; i < 3; ++i) after[i] -= before[i];
    if (settings.step > 2) steps.push_back(after);
  }
  report(all, shape, std::move(steps));
  executor.close();
  groups.close();
}

}  // namespace
}  // namespace ptrain

int main(int argc, char** argv) {
  using namespace ptrain;
  const bench::Shape shape =
      bench::shape_from(argc, argv, 2, {8, 512, 8, 4, 1536, 32000, 2, 128, 8});
  try {
    comm::identify();
    const auto world = comm::make_mpi({});
    const std::string_view how = argc > 1 ? argv[1] : "messages";
    bench::Silent silent(*world);
    run(how == "silent" ? silent : *world, *world, layout_of(how, world->size(), shape), shape);
    world->close();
    comm::leave();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
