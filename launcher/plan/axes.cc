#include "launcher/plan/axes.h"

#include <algorithm>
#include <string_view>

#include "launcher/plan/schedules.h"
#include "launcher/plan/stages.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;
using Values = std::vector<std::int64_t>;

// Ranks that no degree has taken yet.
int left(const Layout& layout, const Space& space) {
  return space.num_ranks / (layout.pp * layout.tp * layout.cp * layout.shard * layout.dp);
}

Values degrees(const Layout& layout, const Space& space) { return divisors(left(layout, space)); }

bool has_experts(const Space& space) {
  return space.architecture != nullptr && space.architecture->decoder.moe.num_experts > 0;
}

template <int Layout::*member>
void set_degree(Layout& layout, std::int64_t value, const Space&) {
  layout.*member = static_cast<int>(value);
}

void set_pipeline(Layout& layout, std::int64_t value, const Space& space) {
  set_degree<&Layout::pp>(layout, value, space);
  if (value > 1) layout.shared_window = false;
  layout.spread_embedding = space.fixed.embedding == recipe::Embedding::kAllStages;
  layout.spread_head = space.fixed.head == recipe::Head::kAllStages;
}

Values virtuals(const Layout& layout, const Space& space) {
  if (layout.pp == 1) return {1};
  if (space.fixed.num_virtual > 0) return {space.fixed.num_virtual};
  if (!space.schedule_csv.empty()) return {virtual_stages_of(space.schedule_csv, layout.pp)};
  return {1, 2};
}

// Places in the list of those for so many stages a rank, of which two stand for more; any one where
// the recipe says which.
Values schedules(const Layout& layout, const Space& space) {
  if (layout.num_stages() == 1 || !space.fixed.schedule.empty()) return {0};
  Values places;
  const auto all = planned_schedules();
  for (std::size_t place = 0; place < all.size(); ++place)
    if (all[place].num_virtual == std::min(2, layout.num_virtual))
      places.push_back(static_cast<std::int64_t>(place));
  if (layout.num_virtual > 2) places.resize(1);
  return places;
}

// Lists of the recipe that do not suit the layout are left out, and then refused by a rule.
void set_schedule(Layout& layout, std::int64_t value, const Space& space) {
  if (layout.num_stages() == 1) return;
  if (!space.schedule_csv.empty()) {
    layout.schedule_csv = space.schedule_csv;
  } else if (!space.fixed.schedule.empty()) {
    layout.schedule = space.fixed.schedule;
  } else {
    layout.schedule = planned_schedules()[static_cast<std::size_t>(value)].name;
  }
  if (auto layers = stage_layers_of(layout, space)) layout.stage_layers = std::move(*layers);
  layout.layer_dtypes = layer_dtypes_of(layout, space);
  if (space.fixed.stage_recompute.empty()) return;
  auto all = stage_recompute_from(space.fixed.stage_recompute, layout.num_stages());
  if (all) layout.stage_recompute = std::move(*all);
}

Values recomputes(const Layout& layout, const Space&) {
  return layout.stage_recompute.empty() ? Values{0, 1, 2} : Values{0};
}

void set_recompute(Layout& layout, std::int64_t value, const Space&) {
  layout.recompute = static_cast<recipe::Recompute>(value);
}

// Of the ranks of a stage. What does not divide experts or ranks is left to the rule, which says
// what does.
Values expert_degrees(const Layout& layout, const Space& space) {
  if (space.fixed.ep > 0) return {space.fixed.ep};
  if (!has_experts(space)) return {1};
  return divisors(layout.num_stage_ranks());
}

// Columns of experts are split where the recipe says so.
Values expert_tensor_degrees(const Layout&, const Space& space) {
  return {std::max(1, space.fixed.etp)};
}

// Ranks that share rows are a ring of groups of so many.
Values ulysses_degrees(const Layout& layout, const Space&) { return divisors(layout.cp); }

Values zeros(const Layout& layout, const Space&) {
  return layout.num_shards() > 1 ? Values{1, 2, 3} : Values{1};
}

Values micro_batches(const Layout& layout, const Space& space) {
  return divisors(space.rows / layout.num_data_ranks());
}

void set_micro_batch(Layout& layout, std::int64_t rows, const Space& space) {
  layout.micro_batch = rows;
  layout.num_micro_batches = space.rows / layout.num_data_ranks() / rows;
}

// Only where parameters are gathered again and again is there anything to gather ahead.
Values prefetches(const Layout& layout, const Space& space) {
  if (!layout.gathers_each_use()) return {1};
  Values values;
  for (int ahead = 0; ahead <= kMostPrefetch; ++ahead) values.push_back(ahead);
  if (space.fixed.prefetch.value_or(0) > kMostPrefetch) values.push_back(*space.fixed.prefetch);
  return values;
}

constexpr Axis kAxes[] = {
    {"pp", degrees, set_pipeline},
    {"tp", degrees, set_degree<&Layout::tp>},
    {"cp", degrees, set_degree<&Layout::cp>},
    {"ulysses", ulysses_degrees, set_degree<&Layout::ulysses>},
    {"shard", degrees, set_degree<&Layout::shard>},
    {"dp", [](const Layout& layout, const Space& space) { return Values{left(layout, space)}; },
     set_degree<&Layout::dp>},
    {"ep", expert_degrees, set_degree<&Layout::ep>},
    {"etp", expert_tensor_degrees, set_degree<&Layout::etp>},
    {"zero", zeros, set_degree<&Layout::zero>},
    {"micro_batch", micro_batches, set_micro_batch},
    {"virtual", virtuals, set_degree<&Layout::num_virtual>},
    {"schedule", schedules, set_schedule},
    {"recompute", recomputes, set_recompute},
    {"prefetch", prefetches, set_degree<&Layout::prefetch>},
};

}  // namespace

std::span<const Axis> axes() { return kAxes; }

std::size_t num_axes_until(std::string_view name) {
  const auto last = std::ranges::find(kAxes, name, &Axis::name);
  return static_cast<std::size_t>(last - std::begin(kAxes)) + 1;
}

std::vector<Layout> pipelines_of(const Layout& layout, const Space& space) {
  std::vector<Layout> all;
  for (const std::int64_t num_virtual : virtuals(layout, space)) {
    Layout staged = layout;
    set_degree<&Layout::num_virtual>(staged, num_virtual, space);
    for (const std::int64_t schedule : schedules(staged, space)) {
      all.push_back(staged);
      set_schedule(all.back(), schedule, space);
    }
  }
  return all;
}

std::vector<std::int64_t> divisors(std::int64_t number) {
  Values low;
  Values high;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(d);
    if (d != number / d) high.push_back(number / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace ptrain::plan
