#include "launcher/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "core/program/offload_plan.h"
#include "launcher/plan/memory.h"
#include "launcher/plan/simulate.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;
using program::Action;

// From here on a further micro-batch repeats the one before: longer programs are carried on in a
// straight line instead of being simulated.
constexpr std::int64_t kSimulatedMicroBatches = 4;
// Memory repeats from the third micro-batch on, so a short program has the peak of a long one.
constexpr std::int64_t kCountedMicroBatches = kSimulatedMicroBatches - 1;

// The range of low_s and high_s; docs/plan-json.md explains it to users. CPU seconds of a step lay
// within 0.97 and 1.16 of the prediction (six layouts of two ranks: dp, zero 1 and 3, short and
// long rows, recompute, two widths); another machine is given twice the room. Assumed figures may
// be off by 2 either way.
constexpr double kLowMeasured = 0.8, kHighMeasured = 1.3;
constexpr double kLowAssumed = 0.5, kHighAssumed = 2.0;

bool is_pipeline(const Layout& layout) { return layout.num_stages() > 1; }

struct Measured {
  double step_s = 0, busy_s = 0, exposed_s = 0;
  std::array<double, kNumTerms> terms_s{};
};

// With so many micro-batches.
Result<std::vector<program::Program>> compile_with(const SearchInput& input,
                                                   std::span<const Part> parts, Layout layout,
                                                   std::int64_t num_micro_batches) {
  layout.num_micro_batches = num_micro_batches;
  return compile_parts(parts, layout, input.shape.name);
}

Result<Measured> time_of(const SearchInput& input, const Layout& layout,
                         std::span<const Part> parts, std::span<const program::Program> programs) {
  PTRAIN_TRY(const Timeline timeline, run_on_clock({parts, layout, input.cluster, input.placement,
                                                    input.shape.sequence, input.attention},
                                                   programs));
  const RankTimeline& rank = timeline.ranks.front();
  Measured out;
  out.step_s = timeline.step_s;
  out.busy_s = timeline.step_s * (1 - timeline.bubble);
  for (const double exposed : rank.exposed_s) out.exposed_s += exposed;
  for (const Action& action : programs.front().actions) {
    const Interval& interval = rank.actions[static_cast<std::size_t>(action.id)];
    out.terms_s[static_cast<std::size_t>(term_of(action.kind))] +=
        interval.end_s - interval.start_s;
  }
  return out;
}

// a + more * (a - b)
double carry_on(double a, double b, double more) { return a + more * (a - b); }

Measured carry_on(const Measured& a, const Measured& b, double more) {
  Measured out;
  out.step_s = carry_on(a.step_s, b.step_s, more);
  out.busy_s = carry_on(a.busy_s, b.busy_s, more);
  out.exposed_s = carry_on(a.exposed_s, b.exposed_s, more);
  for (std::size_t t = 0; t < out.terms_s.size(); ++t)
    out.terms_s[t] = carry_on(a.terms_s[t], b.terms_s[t], more);
  return out;
}

// `programs`: those of first_programs. In a pipeline these are whole.
Result<Measured> time_of_all(const SearchInput& input, const Layout& layout,
                             std::span<const Part> parts,
                             std::span<const program::Program> programs) {
  if (is_pipeline(layout) || layout.num_micro_batches <= kCountedMicroBatches)
    return time_of(input, layout, parts, programs);
  PTRAIN_TRY(const auto longer, compile_with(input, parts, layout, kSimulatedMicroBatches));
  PTRAIN_TRY(Measured out, time_of(input, layout, parts, longer));
  if (layout.num_micro_batches == kSimulatedMicroBatches) return out;
  PTRAIN_TRY(const Measured before, time_of(input, layout, parts, programs));
  return carry_on(out, before,
                  static_cast<double>(layout.num_micro_batches - kSimulatedMicroBatches));
}

program::MemoryContext memory_context(const SearchInput& input, const Layout& layout,
                                      const Part& part) {
  return {part.architecture,
          layout,
          part.buffers,
          input.shape.sequence,
          mesh::fullest_ranks(part.architecture, part.buffers),
          input.keeps_copy};
}

program::BytesByClass bytes_of(const SearchInput& input, const Layout& layout, const Part& part,
                               const program::Program& program) {
  const program::MemoryContext context = memory_context(input, layout, part);
  program::BytesByClass bytes = program::peak_bytes(program, context);
  add_estimates(bytes, context);
  return bytes;
}

// What the fullest rank holds from start to end: a bound that needs no program.
std::int64_t least_bytes(const SearchInput& input, const Layout& layout,
                         std::span<const Part> parts) {
  std::int64_t most = 0;
  for (const Part& part : parts)
    most =
        std::max(most, total_bytes(program::persistent_bytes(memory_context(input, layout, part))));
  return most;
}

run::Prediction predict(const SearchInput& input, const Measured& time) {
  run::Prediction out;
  const bool assumed = input.cluster.figures.assumed;
  out.step_s = time.step_s;
  out.low_s = time.step_s * (assumed ? kLowAssumed : kLowMeasured);
  out.high_s = time.step_s * (assumed ? kHighAssumed : kHighMeasured);
  out.tokens_per_s = static_cast<double>(input.shape.global_batch_tokens) / time.step_s;
  const double peak = input.cluster.figures.matmul(input.architecture.compute_dtype) *
                      input.placement.threads * input.placement.num_ranks;
  out.mfu = model::train_flops_per_token(input.architecture, input.shape.sequence) *
            out.tokens_per_s / peak;
  out.bubble = 1 - time.busy_s / time.step_s;
  out.exposed_s = time.exposed_s;
  return out;
}

// Smaller is plainer.
auto complexity(const Layout& layout) {
  return std::tuple(layout.pp, layout.num_virtual, layout.schedule, layout.tp, layout.cp,
                    layout.ulysses, layout.recompute, layout.shard, layout.zero,
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
  const bool on_gpus = input.placement.on_gpus;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  for (const auto& node : input.cluster.nodes)
    if (!on_gpus || node.num_gpus > 0)
      smallest = std::min(smallest, on_gpus ? node.gpu_memory_bytes : node.memory_bytes);
  return on_gpus ? smallest : smallest / input.placement.ranks_per_node;
}

namespace {

// Enough to count the memory of: that of a pipeline depends on all micro-batches.
Result<std::vector<program::Program>> first_programs(const SearchInput& input,
                                                     std::span<const Part> parts,
                                                     const Layout& layout) {
  const std::int64_t counted = std::min(layout.num_micro_batches, kCountedMicroBatches);
  return compile_with(input, parts, layout,
                      is_pipeline(layout) ? layout.num_micro_batches : counted);
}

// Fills in the candidate's bytes, and its times where it has room.
Status weigh(const SearchInput& input, std::span<const Part> parts, std::int64_t memory,
             Candidate& candidate) {
  const Layout& layout = candidate.layout;
  PTRAIN_TRY(const auto programs, first_programs(input, parts, layout));
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto bytes = bytes_of(input, layout, parts[p], programs[p]);
    if (total_bytes(bytes) > total_bytes(candidate.bytes)) candidate.bytes = bytes;
  }
  if (total_bytes(candidate.bytes) > memory) return {};
  PTRAIN_TRY(const Measured time, time_of_all(input, layout, parts, programs));
  candidate.terms_s = time.terms_s;
  candidate.predicted = predict(input, time);
  return {};
}

}  // namespace

Result<std::vector<run::ClassPrediction>> classes_of(const SearchInput& input, const Layout& layout,
                                                     std::span<const Part> parts,
                                                     std::span<const program::Program> programs) {
  PTRAIN_TRY(const auto counted, first_programs(input, parts, layout));
  std::vector<run::ClassPrediction> classes;
  for (std::size_t p = 0; p < parts.size(); ++p)
    classes.push_back({layout.num_ranks() / layout.pp, class_hash(programs[p]),
                       bytes_of(input, layout, parts[p], counted[p])});
  return classes;
}

Result<Candidate> evaluate(const SearchInput& input, const Layout& layout) {
  Candidate candidate;
  candidate.layout = layout;
  PTRAIN_TRY(const auto parts, parts_of(input.architecture, layout));
  PTRAIN_CHECK(weigh(input, parts, std::numeric_limits<std::int64_t>::max(), candidate));
  return candidate;
}

namespace {

// What the parts of the model follow from.
std::string cut_of(const Layout& layout) {
  Layout cut = layout;
  cut.zero = 1;
  cut.micro_batch = cut.num_micro_batches = 1;
  cut.recompute = recipe::Recompute::kNone;
  cut.stage_recompute.clear();
  return mesh::to_string(cut);
}

// Ranks or rejects every layout of a part of the space: with this offload, and with or without
// ranks that work on the same rows.
struct PartOfSpace {
  recipe::Offload offload = recipe::Offload::kNone;
  bool data_ranks_only = false;
};
Status add_layouts(const SearchInput& input, const PartOfSpace& part, Ranking& ranking) {
  const std::int64_t rows = input.shape.global_batch_tokens / input.shape.sequence;
  Enumeration all =
      enumerate({input.placement.num_ranks, rows, input.fixed, input.placement.shares_memory(),
                 part.offload, &input.architecture, input.shape.sequence, input.schedule_csv,
                 input.placement.on_gpus, part.data_ranks_only});
  // What cannot be has been listed without offloading.
  if (ranking.rejected.empty()) ranking.rejected = std::move(all.rejected);
  const std::int64_t memory = rank_memory(input);
  std::map<std::string, std::vector<Part>> known;
  for (const Layout& layout : all.legal) {
    std::vector<Part>& parts = known[cut_of(layout)];
    if (parts.empty()) {
      PTRAIN_TRY(parts, parts_of(input.architecture, layout));
    }
    Candidate candidate;
    candidate.layout = layout;
    std::int64_t bytes = least_bytes(input, layout, parts);
    if (bytes <= memory) {
      PTRAIN_CHECK(weigh(input, parts, memory, candidate));
      bytes = total_bytes(candidate.bytes);
    }
    if (bytes > memory)
      ranking.rejected.push_back(too_large(layout, bytes, memory));
    else
      ranking.ranked.push_back(std::move(candidate));
  }
  return {};
}

bool keeps_state(const model::Architecture& architecture) {
  return std::ranges::any_of(program::ring_buffers(architecture), [](int b) { return b >= 0; });
}

}  // namespace

Result<Ranking> search(const SearchInput& input) {
  using recipe::Offload;
  Ranking ranking{input.shape.name, {}, {}};
  const auto fixed = input.fixed.offload;
  const Offload first = fixed.value_or(Offload::kNone);
  PTRAIN_CHECK(add_layouts(input, {first, true}, ranking));
  // The other axes make the space a hundred times larger.
  if (ranking.ranked.empty()) {
    ranking.rejected.clear();
    PTRAIN_CHECK(add_layouts(input, {first, false}, ranking));
  }
  const bool offloads = !fixed && keeps_state(input.architecture) && !input.placement.on_gpus;
  if (ranking.ranked.empty() && offloads)
    PTRAIN_CHECK(add_layouts(input, {Offload::kOptimizer, true}, ranking));
  rank_all(ranking.ranked, rank_memory(input));
  return ranking;
}

}  // namespace ptrain::plan
