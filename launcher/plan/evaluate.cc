#include "launcher/plan/evaluate.h"

#include <algorithm>
#include <limits>

#include "core/program/validate.h"
#include "launcher/plan/memory.h"
#include "launcher/plan/schedules.h"
#include "launcher/plan/simulate.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;
using program::Action;

// From here on a further micro-batch repeats the one before: longer programs are carried on in a
// straight line instead of being simulated. Memory repeats too, so a short program has the peak of
// a long one; but not that of a spread embedding, whose outputs are made before all else.
constexpr std::int64_t kCountedMicroBatches = 3;
// The same for the orders that the planner looks into by itself: a pipeline that is filled so many
// times its stages goes on with what it did for as many micro-batches as it has ranks.
constexpr std::int64_t kCountedFills = 3;

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

// After how many micro-batches a step repeats itself, and the fewest, of as many as leave a whole
// number of repetitions, from which on it does.
std::int64_t repetition(const Layout& layout) { return is_pipeline(layout) ? layout.pp : 1; }

// `programs`: those of first_programs; adds the actions of those beyond.
Result<Measured> time_of_all(const SearchInput& input, const Layout& layout,
                             std::span<const Part> parts,
                             std::span<const program::Program> programs,
                             std::int64_t& num_actions) {
  const std::int64_t counted = counted_micro_batches(layout), period = repetition(layout);
  PTRAIN_TRY(const Measured before, time_of(input, layout, parts, programs));
  if (counted == layout.num_micro_batches) return before;
  PTRAIN_TRY(const auto longer, compile_with(input, parts, layout, counted + period));
  for (const program::Program& program : longer) num_actions += std::ssize(program.actions);
  PTRAIN_TRY(const Measured out, time_of(input, layout, parts, longer));
  const std::int64_t more = (layout.num_micro_batches - counted) / period - 1;
  return carry_on(out, before, static_cast<double>(more));
}

program::BytesByClass bytes_of(const program::Program& program,
                               const program::MemoryContext& context) {
  program::BytesByClass bytes = program::peak_bytes(program, context);
  add_estimates(bytes, context);
  return bytes;
}

program::MemoryContext memory_context(const SearchInput& input, const Layout& layout,
                                      const Part& part) {
  return {part.architecture,
          layout,
          part.buffers,
          input.shape.sequence,
          mesh::fullest_ranks(part.architecture, part.buffers),
          input.keeps_copy,
          expert_load(part.architecture)};
}

// As if all tokens chose the experts of this rank.
std::int64_t most_bytes(const program::Program& program, program::MemoryContext context) {
  context.expert_load = 0;
  return program::total_bytes(bytes_of(program, context));
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

// What is chosen must not hang.
Status validate_parts(std::span<const Part> parts, std::span<const program::Program> programs,
                      Layout layout) {
  layout.num_micro_batches = counted_micro_batches(layout);
  std::vector<const program::Program*> places;
  std::vector<const model::Architecture*> architectures;
  for (std::size_t place = 0; place < parts.size(); ++place) {
    places.push_back(&programs[place]);
    architectures.push_back(&parts[place].architecture);
  }
  return program::validate_places(places, architectures, layout);
}

// Enough to count the memory of.
Result<std::vector<program::Program>> first_programs(const SearchInput& input,
                                                     std::span<const Part> parts,
                                                     const Layout& layout) {
  return compile_with(input, parts, layout, counted_micro_batches(layout));
}

}  // namespace

std::int64_t counted_micro_batches(const Layout& layout) {
  const std::int64_t all = layout.num_micro_batches, period = repetition(layout);
  const bool is_known = layout.schedule_csv.empty() && !layout.spread_embedding &&
                        !layout.spread_head && find_planned(layout.schedule) != nullptr;
  const bool repeats = !is_pipeline(layout) || is_known;
  const std::int64_t least =
      is_pipeline(layout) ? kCountedFills * layout.num_stages() : kCountedMicroBatches;
  if (!repeats || all <= least) return all;
  return least + (all - least) % period;
}

std::int64_t rank_memory(const SearchInput& input) {
  const bool on_gpus = input.placement.on_gpus;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  for (const auto& node : input.cluster.nodes)
    if (!on_gpus || node.num_gpus > 0)
      smallest = std::min(smallest, on_gpus ? node.gpu_memory_bytes : node.memory_bytes);
  return on_gpus ? smallest : smallest / input.placement.ranks_per_node;
}

Status simulate_candidate(const SearchInput& input, std::span<const Part> parts,
                          std::int64_t memory, Candidate& candidate) {
  const Layout& layout = candidate.layout;
  PTRAIN_TRY(const auto programs, first_programs(input, parts, layout));
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const program::MemoryContext context = memory_context(input, layout, parts[p]);
    const auto bytes = bytes_of(programs[p], context);
    if (program::total_bytes(bytes) > program::total_bytes(candidate.bytes))
      candidate.bytes = bytes;
    if (context.expert_load > 0)
      candidate.most_bytes = std::max(candidate.most_bytes, most_bytes(programs[p], context));
  }
  candidate.most_bytes = std::max(candidate.most_bytes, program::total_bytes(candidate.bytes));
  for (const program::Program& program : programs)
    candidate.num_actions += std::ssize(program.actions);
  if (program::total_bytes(candidate.bytes) > memory) return {};
  PTRAIN_TRY(const Measured time,
             time_of_all(input, layout, parts, programs, candidate.num_actions));
  candidate.terms_s = time.terms_s;
  candidate.predicted = predict(input, time);
  return {};
}

Result<std::vector<run::ClassPrediction>> classes_of(const SearchInput& input, const Layout& layout,
                                                     std::span<const Part> parts) {
  PTRAIN_TRY(const auto counted, first_programs(input, parts, layout));
  PTRAIN_CHECK(validate_parts(parts, counted, layout));
  std::vector<run::ClassPrediction> classes;
  PTRAIN_TRY(const program::Pipeline pipeline, pipeline_of(parts, layout));
  for (std::size_t p = 0; p < parts.size(); ++p) {
    // One after the other: those of all ranks may fill the memory.
    PTRAIN_TRY(const auto whole, compile_part(parts[p], layout, pipeline, input.shape.name));
    classes.push_back({layout.num_ranks() / layout.pp, class_hash(whole),
                       bytes_of(counted[p], memory_context(input, layout, parts[p]))});
  }
  return classes;
}

Result<Candidate> evaluate(const SearchInput& input, const Layout& layout) {
  Candidate candidate;
  candidate.layout = layout;
  PTRAIN_TRY(const auto parts, parts_of(input.architecture, layout));
  PTRAIN_CHECK(
      simulate_candidate(input, parts, std::numeric_limits<std::int64_t>::max(), candidate));
  return candidate;
}

}  // namespace ptrain::plan
