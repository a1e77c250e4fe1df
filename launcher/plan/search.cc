#include "launcher/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/program/compile.h"
#include "launcher/plan/memory.h"
#include "launcher/plan/simulate.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;
using program::Action;

constexpr auto kComputeLane = static_cast<std::size_t>(program::Lane::kCompute);

// From here on a further micro-batch repeats the one before: longer programs are carried on in a
// straight line instead of being simulated.
constexpr std::int64_t kSimulatedMicroBatches = 4;

// CPU seconds of a step lay within 0.97 and 1.16 of the prediction (six layouts of two ranks: dp,
// zero 1 and 3, short and long rows, recompute, two widths); another machine is given twice the
// room. Assumed figures may be off by 2 either way.
constexpr double kLowMeasured = 0.8, kHighMeasured = 1.3;
constexpr double kLowAssumed = 0.5, kHighAssumed = 2.0;

struct Measured {
  double step_s = 0, busy_s = 0, exposed_s = 0;
  std::array<double, kNumTerms> terms_s{};
};

struct World {
  std::vector<mesh::BufferPlan> buffers;
  program::Program program;  // of rank 0: the ranks of a layout over dp and shard make one class
};

Result<World> compile_one(const SearchInput& input, const Layout& layout) {
  World world;
  world.buffers = mesh::plan_buffers(input.architecture, layout.shard);
  PTRAIN_TRY(world.program, program::compile({input.architecture, layout, input.shape.name}, 0));
  return world;
}

CostContext cost_context(const SearchInput& input, const Layout& layout, const World& world) {
  return {input.architecture, layout,          world.buffers,        input.cluster.figures,
          input.cluster.link, input.placement, input.shape.sequence, input.attention};
}

Result<Measured> time_of(const SearchInput& input, const Layout& layout) {
  PTRAIN_TRY(const World world, compile_one(input, layout));
  const CostContext context = cost_context(input, layout, world);
  SimulateOptions options;
  options.serial = !input.placement.overlaps;
  options.seconds = [&](const Action& action, int) { return action_seconds(action, context); };
  PTRAIN_TRY(const Timeline timeline, simulate(std::span(&world.program, 1), options));
  const RankTimeline& rank = timeline.ranks.front();
  Measured out;
  out.step_s = timeline.step_s;
  out.busy_s = rank.busy_s[kComputeLane];
  for (const double exposed : rank.exposed_s) out.exposed_s += exposed;
  for (const Action& action : world.program.actions) {
    const Interval& interval = rank.actions[static_cast<std::size_t>(action.id)];
    out.terms_s[static_cast<std::size_t>(term_of(action.kind))] +=
        interval.end_s - interval.start_s;
  }
  return out;
}

// a + more * (a - b)
double carry_on(double a, double b, double more) { return a + more * (a - b); }

Result<Measured> time_of_all(const SearchInput& input, Layout layout) {
  if (layout.num_micro_batches <= kSimulatedMicroBatches) return time_of(input, layout);
  const auto more = static_cast<double>(layout.num_micro_batches - kSimulatedMicroBatches);
  layout.num_micro_batches = kSimulatedMicroBatches - 1;
  PTRAIN_TRY(const Measured before, time_of(input, layout));
  layout.num_micro_batches = kSimulatedMicroBatches;
  PTRAIN_TRY(Measured out, time_of(input, layout));
  out.step_s = carry_on(out.step_s, before.step_s, more);
  out.busy_s = carry_on(out.busy_s, before.busy_s, more);
  out.exposed_s = carry_on(out.exposed_s, before.exposed_s, more);
  for (std::size_t t = 0; t < out.terms_s.size(); ++t)
    out.terms_s[t] = carry_on(out.terms_s[t], before.terms_s[t], more);
  return out;
}

// Memory repeats from the third micro-batch on, so a short program has the peak of a long one.
Result<program::BytesByClass> bytes_of(const SearchInput& input, Layout layout) {
  layout.num_micro_batches = std::min<std::int64_t>(layout.num_micro_batches, 3);
  PTRAIN_TRY(const World world, compile_one(input, layout));
  const program::MemoryContext context{input.architecture, layout, world.buffers,
                                       input.shape.sequence};
  program::BytesByClass bytes = program::peak_bytes(world.program, context);
  add_estimates(bytes, context);
  return bytes;
}

// What a rank holds from start to end: a bound that needs no program.
std::int64_t least_bytes(const SearchInput& input, const Layout& layout) {
  const auto buffers = mesh::plan_buffers(input.architecture, layout.shard);
  return total_bytes(
      program::persistent_bytes({input.architecture, layout, buffers, input.shape.sequence}));
}

run::Prediction predict(const SearchInput& input, const Measured& time) {
  run::Prediction out;
  const bool assumed = input.cluster.figures.assumed;
  out.step_s = time.step_s;
  out.low_s = time.step_s * (assumed ? kLowAssumed : kLowMeasured);
  out.high_s = time.step_s * (assumed ? kHighAssumed : kHighMeasured);
  out.tokens_per_s = static_cast<double>(input.shape.global_batch_tokens) / time.step_s;
  const double peak = input.cluster.figures.matmul(input.architecture.dtype) *
                      input.placement.threads * input.placement.num_ranks;
  out.mfu = model::train_flops_per_token(input.architecture, input.shape.sequence) *
            out.tokens_per_s / peak;
  out.bubble = 1 - time.busy_s / time.step_s;
  out.exposed_s = time.exposed_s;
  return out;
}

Status add_time(const SearchInput& input, Candidate& candidate) {
  PTRAIN_TRY(const Measured time, time_of_all(input, candidate.layout));
  candidate.terms_s = time.terms_s;
  candidate.predicted = predict(input, time);
  return {};
}

// Smaller is plainer.
auto complexity(const Layout& layout) {
  return std::tuple(layout.recompute == recipe::Recompute::kFull, layout.shard, layout.zero,
                    layout.num_micro_batches, layout.prefetch);
}

void rank_all(std::vector<Candidate>& candidates, std::int64_t memory) {
  const auto by_time = [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.predicted.step_s, complexity(a.layout)) <
           std::tuple(b.predicted.step_s, complexity(b.layout));
  };
  std::sort(candidates.begin(), candidates.end(), by_time);
  if (candidates.empty()) return;
  const double limit = candidates.front().predicted.step_s * (1 + kTie);
  const auto tied =
      std::partition_point(candidates.begin(), candidates.end(),
                           [&](const Candidate& c) { return c.predicted.step_s <= limit; });
  const std::int64_t eighth = std::max<std::int64_t>(1, memory / 8);
  std::stable_sort(candidates.begin(), tied, [&](const Candidate& a, const Candidate& b) {
    return std::tuple(total_bytes(a.bytes) / eighth, complexity(a.layout)) <
           std::tuple(total_bytes(b.bytes) / eighth, complexity(b.layout));
  });
}

Rejected too_large(const Layout& layout, std::int64_t bytes, std::int64_t memory) {
  constexpr double kMib = 1024.0 * 1024.0;
  return {layout, "more memory than a rank may have",
          fmt::format("needs at least {:.0f} MiB a rank of {:.0f}",
                      static_cast<double>(bytes) / kMib, static_cast<double>(memory) / kMib),
          static_cast<double>(bytes - memory)};
}

}  // namespace

std::int64_t total_bytes(const program::BytesByClass& bytes) {
  std::int64_t total = 0;
  for (const Bytes& one : bytes) total += one.value;
  return total;
}

std::int64_t rank_memory(const SearchInput& input) {
  std::int64_t smallest = input.cluster.nodes.front().memory_bytes;
  for (const auto& node : input.cluster.nodes) smallest = std::min(smallest, node.memory_bytes);
  return smallest / input.placement.ranks_per_node;
}

Result<Candidate> evaluate(const SearchInput& input, const Layout& layout) {
  Candidate candidate;
  candidate.layout = layout;
  PTRAIN_TRY(candidate.bytes, bytes_of(input, layout));
  PTRAIN_CHECK(add_time(input, candidate));
  return candidate;
}

Result<Ranking> search(const SearchInput& input) {
  const std::int64_t rows = input.shape.global_batch_tokens / input.shape.sequence;
  Enumeration all =
      enumerate({input.placement.num_ranks, rows, input.fixed, input.placement.shares_memory()});
  Ranking ranking{input.shape.name, {}, std::move(all.rejected)};
  const std::int64_t memory = rank_memory(input);
  for (const Layout& layout : all.legal) {
    Candidate candidate;
    candidate.layout = layout;
    std::int64_t bytes = least_bytes(input, layout);
    if (bytes <= memory) {
      PTRAIN_TRY(candidate.bytes, bytes_of(input, layout));
      bytes = total_bytes(candidate.bytes);
    }
    if (bytes > memory) {
      ranking.rejected.push_back(too_large(layout, bytes, memory));
      continue;
    }
    PTRAIN_CHECK(add_time(input, candidate));
    ranking.ranked.push_back(std::move(candidate));
  }
  rank_all(ranking.ranked, memory);
  return ranking;
}

}  // namespace ptrain::plan
