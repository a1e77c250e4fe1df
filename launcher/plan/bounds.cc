#include "launcher/plan/bounds.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "launcher/plan/axes.h"
#include "launcher/plan/evaluate.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;
using recipe::Recompute;

// The last axis of each level.
constexpr std::string_view kLastAxes[] = {kLastDegree, "zero",      "micro_batch",
                                          "schedule",  "recompute", "prefetch"};

// Measured, in the unit of kMostWork: a bound's own, that of a stage of its pipeline, of a
// parameter that is cut, of a cell of a schedule.
constexpr std::int64_t kWorkOfBound = 1, kStagesAUnit = 16, kParametersAUnit = 4, kCellsAUnit = 8;

}  // namespace

std::int64_t work_to_cut(std::int64_t num_parameters) { return num_parameters / kParametersAUnit; }

Level next_level(Level level) { return static_cast<Level>(static_cast<int>(level) + 1); }

std::size_t num_axes_of(Level level) {
  if (level == Level::kNone) return 0;
  return num_axes_until(kLastAxes[static_cast<std::size_t>(level) - 1]);
}

Bounds::Bounds(const SearchInput& input, const Space& space, Cuts& cuts, std::int64_t memory)
    : input_(input),
      space_(space),
      memory_(memory),
      cuts_(cuts),
      pipelines_(cuts.likes()),
      bytes_(input, cuts, pipelines_),
      time_(input, cuts, pipelines_) {}

// With the choices behind the level that take least time; what is computed again is tried in turn.
Layout Bounds::fastest(Layout layout, Level level) const {
  const recipe::Parallel& fixed = input_.fixed;
  if (level < Level::kZero) layout.zero = fixed.zero > 0 ? fixed.zero : 1;
  if (level < Level::kMicroBatch) {
    const std::int64_t rows = space_.rows / layout.num_data_ranks();
    layout.micro_batch = fixed.micro_batch > 0 ? fixed.micro_batch : rows;
    layout.num_micro_batches = std::max<std::int64_t>(1, rows / layout.micro_batch);
  }
  if (level < Level::kPrefetch) layout.prefetch = fixed.prefetch.value_or(kMostPrefetch);
  return layout;
}

// With those that take least memory.
Layout Bounds::smallest(Layout layout, Level level) const {
  const recipe::Parallel& fixed = input_.fixed;
  if (level < Level::kZero)
    layout.zero = layout.num_shards() == 1 ? 1 : fixed.zero > 0 ? fixed.zero : 3;
  if (level < Level::kMicroBatch) {
    const std::int64_t rows = space_.rows / layout.num_data_ranks();
    layout.micro_batch = std::max<std::int64_t>(1, fixed.micro_batch);
    layout.num_micro_batches = std::max<std::int64_t>(1, rows / layout.micro_batch);
  }
  if (level < Level::kPrefetch)
    layout.prefetch = layout.gathers_each_use() ? fixed.prefetch.value_or(0) : 1;
  return layout;
}

// Fastest first.
std::vector<Recompute> Bounds::recomputes_of(const Layout& begun, Level level) const {
  if (level >= Level::kRecompute || !begun.stage_recompute.empty()) return {begun.recompute};
  if (input_.fixed.recompute) return {*input_.fixed.recompute};
  return {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
}

double Bounds::seconds_of(const Layout& layout, Level level) {
  if (level >= Level::kMicroBatch) return time_.of(layout);
  return time_.of_all_from(layout, std::max<std::int64_t>(1, input_.fixed.micro_batch));
}

void Bounds::lower(Bound& bound, Layout small, Layout fast, Level level) {
  for (const Recompute recompute : recomputes_of(small, level)) {
    small.recompute = fast.recompute = recompute;
    num_stages_ += kStagesAUnit * kWorkOfBound + small.num_stages();
    const std::int64_t bytes = bytes_.of(small);
    if (bytes < bound.bytes) bound.bytes = bytes, bound.smallest = small;
    if (bytes > memory_) continue;
    bound.seconds = std::min(bound.seconds, seconds_of(fast, level));
    if (recompute == Recompute::kNone) break;  // what computes again takes longer
  }
}

Bound Bounds::of(const Layout& begun, Level level) {
  const auto in_pipelines = [&](const Layout& layout) {
    return level < Level::kSchedule ? pipelines_of(layout, space_) : std::vector{layout};
  };
  const std::vector<Layout> smalls = in_pipelines(smallest(begun, level));
  const std::vector<Layout> fasts = in_pipelines(fastest(begun, level));
  // Where layers do not make the stages a rule says so.
  const auto cannot_be = [](const Layout& layout) {
    return layout.num_stages() > 1 && layout.stage_layers.empty();
  };
  if (std::ranges::all_of(smalls, cannot_be)) return {.seconds = 0, .bytes = 0};
  Bound bound;
  for (std::size_t p = 0; p < smalls.size(); ++p)
    if (!cannot_be(smalls[p])) lower(bound, smalls[p], fasts[p], level);
  return bound;
}

std::int64_t Bounds::work_to_compile(const Layout& layout) {
  constexpr std::int64_t kPassesOfAStage = 3;
  const std::int64_t cells = kPassesOfAStage * layout.num_stages() * layout.num_micro_batches;
  return static_cast<std::int64_t>(time_.num_actions(layout)) + cells / kCellsAUnit;
}

// Twice, where a step is carried on: from two lengths.
std::int64_t Bounds::work_to_simulate(const Layout& layout) {
  Layout counted = layout;
  counted.num_micro_batches = counted_micro_batches(layout);
  const int times = counted == layout ? 1 : 2;
  return times * work_to_compile(counted);
}

std::int64_t Bounds::work() const {
  return num_stages_ / kStagesAUnit + work_to_cut(cuts_.num_cut()) +
         bytes_.num_cells() / kCellsAUnit;
}

}  // namespace ptrain::plan
