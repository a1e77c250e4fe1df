// Training steps of a fully sharded model, timed as tokens per CPU second over all ranks. Run by
// mpirun with OMP_NUM_THREADS=1. Arguments: window | messages, then layers hidden heads kv_heads
// ffn vocabulary, rows of all ranks, sequence, steps.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "core/program/compile.h"
#include "engine/base/engine_error.h"
#include "engine/comm/bootstrap_pmix.h"
#include "engine/execute/executor.h"
#include "engine/state/init.h"

namespace ptrain {
namespace {

struct Sizes {
  std::int64_t layers, hidden, heads, kv_heads, ffn, vocabulary, rows, sequence, steps;
};

model::Architecture architecture_of(const Sizes& sizes) {
  recipe::Model config;
  config.num_hidden_layers = sizes.layers;
  config.hidden_size = sizes.hidden;
  config.num_attention_heads = sizes.heads;
  config.num_key_value_heads = sizes.kv_heads;
  config.intermediate_size = sizes.ffn;
  config.vocab_size = sizes.vocabulary;
  return value_or_throw(model::llama(config, DType::kFloat32));
}

data::MicroBatch random_batch(const Sizes& sizes, int rank, int num_ranks) {
  data::MicroBatch batch;
  batch.rows = sizes.rows / num_ranks;
  batch.sequence = sizes.sequence;
  std::mt19937 generator(static_cast<unsigned>(rank));
  std::uniform_int_distribution token(0, static_cast<std::int32_t>(sizes.vocabulary - 1));
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    batch.documents.push_back({row * sizes.sequence, (row + 1) * sizes.sequence});
    for (std::int64_t column = 0; column < sizes.sequence; ++column) {
      batch.tokens.push_back(token(generator));
      batch.targets.push_back(token(generator));
      batch.positions.push_back(static_cast<std::int32_t>(column));
    }
  }
  return batch;
}

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
}

void report(comm::Communicator& world, const Sizes& sizes,
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
  const auto tokens = static_cast<double>(sizes.rows * sizes.sequence);
  fmt::print(
      R"({{"tok_cpu_s": {:.0f}, "step_cpu_ms": {:.1f}, "step_ms": {:.1f}, "faults": {:.0f}}})"
      "\n",
      tokens / median(0), 1e3 * median(0), 1e3 * median(2) / world.size(), median(1));
}

void run(comm::Communicator& world, bool window, const Sizes& sizes) {
  const auto architecture = architecture_of(sizes);
  mesh::Layout layout{.shard = world.size(), .zero = 3, .shared_window = window};
  layout.micro_batch = sizes.rows / world.size();
  const auto program =
      value_or_throw(program::compile({architecture, layout, "bench"}, world.rank()));
  const auto gather = world.split(0, world.rank(), "gather");
  const auto reduce = world.split(0, world.rank(), "reduce");
  Arena arena;
  execute::Executor executor(architecture, layout, {world, gather.get(), reduce.get(), nullptr},
                             arena);
  initialise(executor, architecture);
  const data::MicroBatch batch = random_batch(sizes, world.rank(), world.size());
  execute::StepSettings settings;
  settings.learning_rate = 1e-4;
  std::vector<std::array<double, 3>> steps;
  for (settings.step = 1; settings.step <= sizes.steps + 2; ++settings.step) {  // two to warm up
    const auto before = used();
    executor.train(program, {&batch, 1}, settings);
    auto after = used();
    for (std::size_t i = 0; i < 3; ++i) after[i] -= before[i];
    if (settings.step > 2) steps.push_back(after);
  }
  report(world, sizes, std::move(steps));
  executor.close();
  reduce->close();
  gather->close();
}

}  // namespace
}  // namespace ptrain

int main(int argc, char** argv) {
  using namespace ptrain;
  std::vector<std::int64_t> v{8, 512, 8, 4, 1536, 32000, 2, 128, 8};
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(argc) && i < v.size(); ++i)
    v[i] = std::atoll(argv[i + 2]);
  try {
    comm::identify();
    const auto world = comm::make_mpi({});
    run(*world, argc > 1 && argv[1] == std::string_view("window"),
        {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]});
    world->close();
    comm::leave();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
