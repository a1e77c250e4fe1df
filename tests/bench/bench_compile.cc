// How long it takes to compile one rank's program of 32 layers in 8 stages and 64 micro-batches,
// and to put the programs of all ranks on a clock: medians, in milliseconds. Compiling is told of
// the rank that takes longest, with the schedule made anew each time.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/program/compile.h"
#include "launcher/plan/simulate.h"
#include "tests/support/small_llama.h"

namespace ptrain {
namespace {

constexpr int kTimes = 51;

std::vector<mesh::Layout> layouts() {
  return {
      {.pp = 8, .schedule = "1f1b", .num_micro_batches = 64},
      {.pp = 8, .schedule = "zb_h1", .num_micro_batches = 64},
      {.pp = 4, .num_virtual = 2, .schedule = "interleaved_1f1b", .num_micro_batches = 64},
      {.num_virtual = 8, .schedule = "breadth_first", .num_micro_batches = 64},
      {.pp = 4, .num_virtual = 2, .schedule = "zb_v", .num_micro_batches = 64},
      {.shard = 2, .pp = 8, .schedule = "1f1b", .zero = 3, .num_micro_batches = 64},
  };
}

template <class Work>
double median_ms(Work work) {
  std::vector<double> times;
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// Collectives meet nobody, since one rank stands for their members.
plan::SimulateOptions options() {
  plan::SimulateOptions options;
  options.seconds = [](const program::Action&, int) { return 1e-3; };
  return options;
}

// One rank of each stage stands for those that share it.
void run(const mesh::Layout& layout) {
  const auto architecture = support::small_llama(30);  // and two ends
  double compiling = 0;
  std::vector<program::Program> world;
  for (int place = 0; place < layout.pp; ++place) {
    const auto compile = [&] {
      return program::compile({architecture, layout, "b"}, place * layout.num_stage_ranks());
    };
    compiling = std::max(compiling, median_ms([&] { compile().value(); }));
    world.push_back(compile().value());
  }
  std::size_t most = 0;
  for (const auto& program : world) most = std::max(most, program.actions.size());
  const double simulating = median_ms([&] { plan::simulate(world, options()).value(); });
  fmt::print(
      "{:16} pp {} virtual {} zero {}: {} actions at most, compiled in {:.2f} ms; simulated in "
      "{:.2f} ms\n",
      layout.schedule, layout.pp, layout.num_virtual, layout.zero, most, compiling, simulating);
}

}  // namespace
}  // namespace ptrain

int main() {
  for (const auto& layout : ptrain::layouts()) ptrain::run(layout);
}
