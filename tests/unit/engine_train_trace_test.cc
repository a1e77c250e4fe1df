#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "core/mesh/part.h"
#include "core/program/compile.h"
#include "engine/base/engine_error.h"
#include "engine/execute/groups.h"
#include "engine/train/trace.h"
#include "tests/support/compile_world.h"
#include "tests/support/ranks.h"
#include "tests/support/small_llama.h"
#include "tests/support/small_model.h"

namespace ptrain::train {
namespace {

using nlohmann::json;

struct Span {
  std::string name;
  double begin, end;
};

data::MicroBatch row(int tokens = 10) {
  data::MicroBatch batch;
  batch.rows = 1;
  batch.sequence = tokens;
  batch.tokens.assign(static_cast<std::size_t>(tokens), 3);
  batch.targets.assign(static_cast<std::size_t>(tokens), 4);
  batch.positions.resize(static_cast<std::size_t>(tokens));
  std::iota(batch.positions.begin(), batch.positions.end(), 0);
  batch.documents.push_back({0, tokens});
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

// Bytes that each rank hands in to exchanges of heads in one step over a row of 8 tokens a rank.
std::vector<std::int64_t> ulysses_bytes(int ranks) {
  recipe::Model model = support::small_sizes();
  model.hidden_size = 32;
  model.num_attention_heads = model.num_key_value_heads = 8;
  const auto whole = value_or_throw(model::make_architecture(model, DType::kFloat32));
  const mesh::Layout layout{.cp = ranks, .ulysses = ranks};
  tests::run_ranks(ranks, [&](comm::Communicator& world) {
    const auto part = value_or_throw(mesh::part_of(whole, layout, world.rank()));
    const auto program = value_or_throw(program::compile({part, layout, "long"}, world.rank()));
    Arena arena;
    execute::Groups groups(world, layout, part);
    execute::Executor executor(part, layout, groups.communicators(), arena);
    {
      Trace trace(executor, path_of(world.rank()), world.rank(), 1);
      const data::MicroBatch batch = row(8 * ranks);
      execute::StepSettings settings;
      settings.step = 1;
      executor.train(program, {&batch, 1}, settings);
      trace.step_done(1);
    }
    executor.close();
    groups.close();
  });
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream file(path_of(rank));
    for (const json& event : json::parse(file))
      if (event["name"].get<std::string>().find("axis=ulysses") != std::string::npos)
        bytes[static_cast<std::size_t>(rank)] += event["args"]["bytes"].get<std::int64_t>();
  }
  return bytes;
}

// A rank has as many tokens then, and gives as much: queries, keys, values and outputs once going
// forward, these, outputs again and two gradients going back, in two layers.
TEST(TraceBytes, OfUlyssesRanksStayFlatWhenRowsAndRanksDouble) {
  constexpr std::int64_t kMatrix = 8 * 32 * 4;  // tokens x hidden, float32
  const std::int64_t expected = 2 * (4 + (3 + 2) + 3) * kMatrix;
  EXPECT_EQ(ulysses_bytes(2), std::vector(2, expected));
  EXPECT_EQ(ulysses_bytes(4), std::vector(4, expected));
  EXPECT_EQ(ulysses_bytes(8), std::vector(8, expected));
}

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
