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

struct Case {
  const char* schedule;
  int pp, num_virtual;
  int shard = 1, zero = 1;
};
constexpr Case kCases[] = {
    {"1f1b", 8, 1},          {"zb_h1", 8, 1}, {"interleaved_1f1b", 4, 2},
    {"breadth_first", 1, 8}, {"zb_v", 4, 2},  {"1f1b", 8, 1, 2, 3},
};

mesh::Layout layout_of(const Case& value) {
  mesh::Layout layout;
  layout.pp = value.pp;
  layout.num_virtual = value.num_virtual;
  layout.schedule = value.schedule;
  layout.shard = value.shard;
  layout.zero = value.zero;
  layout.num_micro_batches = 64;
  return layout;
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
void run(const Case& value) {
  const mesh::Layout layout = layout_of(value);
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
      value.schedule, layout.pp, layout.num_virtual, layout.zero, most, compiling, simulating);
}

}  // namespace
}  // namespace ptrain

int main() {
  for (const ptrain::Case& value : ptrain::kCases) ptrain::run(value);
}
