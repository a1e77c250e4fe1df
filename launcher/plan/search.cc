#include "launcher/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "core/program/compile.h"
#include "core/program/offload_plan.h"
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
// Memory repeats from the third micro-batch on, so a short program has the peak of a long one.
constexpr std::int64_t kCountedMicroBatches = kSimulatedMicroBatches - 1;

// The range of low_s and high_s; docs/plan-json.md explains it to users. CPU seconds of a step lay
// within 0.97 and 1.16 of the prediction (six layouts of two ranks: dp, zero 1 and 3, short and
// long rows, recompute, two widths); another machine is given twice the room. Assumed figures may
// be off by 2 either way.
constexpr double kLowMeasured = 0.8, kHighMeasured = 1.3;
constexpr double kLowAssumed = 0.5, kHighAssumed = 2.0;

struct Measured {
  double step_s = 0, busy_s = 0, exposed_s = 0;
  std::array<double, kNumTerms> terms_s{};
};

using Buffers = std::vector<mesh::BufferPlan>;

// The program of rank 0 with so many micro-batches: the ranks of a layout over dp and shard make
// one class.
Result<program::Program> compile_with(const SearchInput& input, Layout layout,
                                      std::int64_t num_micro_batches) {
  layout.num_micro_batches = num_micro_batches;
  return program::compile({input.architecture, layout, input.shape.name}, 0);
}

// Seconds of actions; of a pass over a layer once for all layers that are alike, since a deep model
// repeats one block.
class Costs {
 public:
  explicit Costs(const CostContext& context) : context_(context) {
    for (const auto& layer : context.architecture.layers) alike_.push_back(first_alike(layer));
  }

  double operator()(const Action& action) {
    if (action.layer_first < 0 || action.layer_first != action.layer_last)
      return action_seconds(action, context_);
    const int layer = alike_[static_cast<std::size_t>(action.layer_first)];
    const auto [known, is_new] = known_.try_emplace({action.kind, layer}, 0.0);
    if (is_new) known->second = action_seconds(action, context_);
    return known->second;
  }

 private:
  // The first layer that costs the same.
  int first_alike(const model::LayerSpec& layer) {
    const auto same = [&](int other) {
      const auto& first = context_.architecture.layers[static_cast<std::size_t>(other)];
      return first.kind == layer.kind && first.stash == layer.stash &&
             first.segments == layer.segments;
    };
    const auto found = std::ranges::find_if(distinct_, same);
    if (found != distinct_.end()) return *found;
    return distinct_.emplace_back(static_cast<int>(alike_.size()));
  }

  const CostContext& context_;
  std::vector<int> distinct_, alike_;
  std::map<std::pair<program::Kind, int>, double> known_;
};

Result<Measured> time_of(const SearchInput& input, Costs& costs, const program::Program& program) {
  SimulateOptions options;
  options.serial = !input.placement.overlaps;
  options.seconds = [&](const Action& action, int) { return costs(action); };
  PTRAIN_TRY(const Timeline timeline, simulate(std::span(&program, 1), options));
  const RankTimeline& rank = timeline.ranks.front();
  Measured out;
  out.step_s = timeline.step_s;
  out.busy_s = rank.busy_s[kComputeLane];
  for (const double exposed : rank.exposed_s) out.exposed_s += exposed;
  for (const Action& action : program.actions) {
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

// `shorter`: the layout's program with at most kCountedMicroBatches.
Result<Measured> time_of_all(const SearchInput& input, const Layout& layout, const Buffers& buffers,
                             const program::Program& shorter) {
  const CostContext context{input.architecture,
                            layout,
                            buffers,
                            input.cluster.figures,
                            input.cluster.link,
                            input.placement,
                            input.shape.sequence,
                            input.attention,
                            mesh::fullest_rank(buffers)};
  Costs costs(context);
  if (layout.num_micro_batches <= kCountedMicroBatches) return time_of(input, costs, shorter);
  PTRAIN_TRY(const auto program, compile_with(input, layout, kSimulatedMicroBatches));
  PTRAIN_TRY(Measured out, time_of(input, costs, program));
  if (layout.num_micro_batches == kSimulatedMicroBatches) return out;
  PTRAIN_TRY(const Measured before, time_of(input, costs, shorter));
  return carry_on(out, before,
                  static_cast<double>(layout.num_micro_batches - kSimulatedMicroBatches));
}

program::BytesByClass bytes_of(const SearchInput& input, const Layout& layout,
                               const Buffers& buffers, const program::Program& shorter) {
  const program::MemoryContext context{
      input.architecture,          layout,          buffers, input.shape.sequence,
      mesh::fullest_rank(buffers), input.keeps_copy};
  program::BytesByClass bytes = program::peak_bytes(shorter, context);
  add_estimates(bytes, context);
  return bytes;
}

// What a rank holds from start to end: a bound that needs no program.
std::int64_t least_bytes(const SearchInput& input, const Layout& layout, const Buffers& buffers) {
  return total_bytes(
      program::persistent_bytes({input.architecture, layout, buffers, input.shape.sequence,
                                 mesh::fullest_rank(buffers), input.keeps_copy}));
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
  return std::tuple(layout.recompute, layout.shard, layout.zero, layout.num_micro_batches,
                    layout.prefetch);
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

// Fills in the candidate's bytes, and its times where it has room.
Status weigh(const SearchInput& input, const Buffers& buffers, std::int64_t memory,
             Candidate& candidate) {
  const Layout& layout = candidate.layout;
  PTRAIN_TRY(const auto shorter,
             compile_with(input, layout, std::min(layout.num_micro_batches, kCountedMicroBatches)));
  candidate.bytes = bytes_of(input, layout, buffers, shorter);
  if (total_bytes(candidate.bytes) > memory) return {};
  PTRAIN_TRY(const Measured time, time_of_all(input, layout, buffers, shorter));
  candidate.terms_s = time.terms_s;
  candidate.predicted = predict(input, time);
  return {};
}

}  // namespace

Result<Candidate> evaluate(const SearchInput& input, const Layout& layout) {
  Candidate candidate;
  candidate.layout = layout;
  PTRAIN_CHECK(weigh(input, mesh::plan_buffers(input.architecture, layout.shard),
                     std::numeric_limits<std::int64_t>::max(), candidate));
  return candidate;
}

namespace {

// Ranks or rejects every layout of the space that offloads so much.
Status add_layouts(const SearchInput& input, recipe::Offload offload, Ranking& ranking) {
  const std::int64_t rows = input.shape.global_batch_tokens / input.shape.sequence;
  Enumeration all = enumerate(
      {input.placement.num_ranks, rows, input.fixed, input.placement.shares_memory(), offload});
  // What cannot be has been listed without offloading.
  if (ranking.rejected.empty()) ranking.rejected = std::move(all.rejected);
  const std::int64_t memory = rank_memory(input);
  std::map<int, Buffers> buffers;  // by shard
  for (const Layout& layout : all.legal) {
    Buffers& of_shard = buffers[layout.shard];
    if (of_shard.empty()) of_shard = mesh::plan_buffers(input.architecture, layout.shard);
    Candidate candidate;
    candidate.layout = layout;
    std::int64_t bytes = least_bytes(input, layout, of_shard);
    if (bytes <= memory) {
      PTRAIN_CHECK(weigh(input, of_shard, memory, candidate));
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
  if (fixed != Offload::kOptimizer) PTRAIN_CHECK(add_layouts(input, Offload::kNone, ranking));
  const bool nothing_fits =
      ranking.ranked.empty() && keeps_state(input.architecture) && !input.placement.on_gpus;
  if (fixed == Offload::kOptimizer || (!fixed && nothing_fits))
    PTRAIN_CHECK(add_layouts(input, Offload::kOptimizer, ranking));
  rank_all(ranking.ranked, rank_memory(input));
  return ranking;
}

}  // namespace ptrain::plan
