#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <vector>

#include "core/program/compile.h"
#include "engine/base/engine_error.h"
#include "engine/train/trace.h"
#include "tests/support/compile_world.h"
#include "tests/support/ranks.h"
#include "tests/support/small_llama.h"

namespace ptrain::train {
namespace {

using nlohmann::json;

struct Span {
  std::string name;
  double begin, end;
};

data::MicroBatch row() {
  data::MicroBatch batch;
  batch.rows = 1;
  batch.sequence = 10;
  batch.tokens.assign(10, 3);
  batch.targets.assign(10, 4);
  batch.positions.resize(10);
  std::iota(batch.positions.begin(), batch.positions.end(), 0);
  batch.documents.push_back({0, 10});
  return batch;
}

std::string path_of(int rank) {
  return testing::TempDir() + "ptrain-trace/rank-" + std::to_string(rank) + ".json";
}

mesh::Layout zero3(bool window) {
  return {.shard = 2, .zero = 3, .num_micro_batches = 2, .shared_window = window};
}

// Two steps of two ranks, of which the first is traced.
std::vector<program::Program> run_traced(bool window) {
  const auto architecture = support::small_llama(2);
  const mesh::Layout layout = zero3(window);
  const auto programs = support::compile_world({architecture, layout, "short"});
  tests::run_ranks(2, [&](comm::Communicator& world) {
    Arena arena;
    const auto gather = world.split(0, world.rank(), "gather");
    const auto reduce = world.split(0, world.rank(), "reduce");
    execute::Executor executor(architecture, layout, {world, gather.get(), reduce.get(), nullptr},
                               arena);
    {
      Trace trace(executor, path_of(world.rank()), world.rank(), 1);
      for (int step = 1; step <= 2; ++step) {
        const std::vector<data::MicroBatch> rows{row(), row()};
        execute::StepSettings settings;
        settings.step = step;
        executor.train(programs[static_cast<std::size_t>(world.rank())], rows, settings);
        trace.step_done(step);
      }
    }
    executor.close();
    reduce->close();
    gather->close();
  });
  return programs;
}

std::map<int, std::vector<Span>> read_spans(int rank) {
  std::ifstream file(path_of(rank));
  std::map<int, std::vector<Span>> spans;
  for (const json& event : json::parse(file)) {
    EXPECT_EQ(event["pid"], rank);
    if (event["ph"] != "X") continue;
    const double begin = event["ts"];
    spans[event["tid"]].push_back({event["name"], begin, begin + event["dur"].get<double>()});
  }
  return spans;
}

// Times are doubles of microseconds since 1970: good to a quarter of one.
constexpr double kResolution = 0.5;

void expect_nested(std::vector<Span> lane) {
  std::stable_sort(lane.begin(), lane.end(),
                   [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<double> open;
  for (const Span& span : lane) {
    EXPECT_LE(span.begin, span.end) << span.name;
    while (!open.empty() && open.back() <= span.begin + kResolution) open.pop_back();
    const double limit = open.empty() ? span.end : open.back();
    EXPECT_LE(span.end, limit + kResolution) << span.name;
    open.push_back(span.end);
  }
}

class TraceFile : public testing::TestWithParam<bool> {};

TEST_P(TraceFile, HasEachActionOfTheTracedStepOnceInItsLane) {
  const auto programs = run_traced(GetParam());
  for (const auto& program : programs) {
    std::map<int, std::vector<std::string>> expected, got;
    for (const auto& action : program.actions)
      expected[static_cast<int>(action.lane)].push_back(program::to_text(action));
    for (const auto& [lane, spans] : read_spans(program.rank)) {
      for (const Span& span : spans) got[lane].push_back(span.name);
      expect_nested(spans);
    }
    EXPECT_EQ(got[0], expected[0]);  // compute: in order
    for (auto* lanes : {&expected, &got})
      for (auto& [lane, names] : *lanes) std::sort(names.begin(), names.end());
    EXPECT_EQ(got, expected);
  }
}

TEST_P(TraceFile, ShowsThatAnActionBeginsAfterThoseItWaitsFor) {
  const auto programs = run_traced(GetParam());
  for (const auto& program : programs) {
    std::map<std::string, Span> spans;
    for (const auto& [lane, in_lane] : read_spans(program.rank))
      for (const Span& span : in_lane) spans[span.name] = span;
    for (const auto& action : program.actions)
      for (const int id : action.after) {
        const auto& before = program.actions[static_cast<std::size_t>(id)];
        EXPECT_LE(spans[program::to_text(before)].end,
                  spans[program::to_text(action)].begin + kResolution)
            << program::to_text(action);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(BothWays, TraceFile, testing::Bool());

TEST(Trace, SaysWhichFileItCannotWrite) {
  const auto architecture = support::small_llama(1);
  tests::run_ranks(1, [&](comm::Communicator& world) {
    Arena arena;
    execute::Executor executor(architecture, {}, {world}, arena);
    try {
      Trace trace(executor, "/proc/none/trace.json", 0, 1);
      FAIL() << "no error";
    } catch (const EngineError& error) {
      EXPECT_EQ(error.error().code, ExitCode::kEnvironment);
      EXPECT_STREQ(error.what(), "cannot write the trace /proc/none/trace.json");
    }
    executor.close();
  });
}

}  // namespace
}  // namespace ptrain::train
