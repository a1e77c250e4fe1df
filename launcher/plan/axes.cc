#include "launcher/plan/axes.h"

namespace ptrain::plan {

namespace {

using mesh::Layout;
using Values = std::vector<std::int64_t>;

// Ranks that no degree has taken yet.
int left(const Layout& layout, const Space& space) {
  return space.num_ranks / (layout.pp * layout.tp * layout.cp * layout.shard * layout.dp);
}

Values degrees(const Layout& layout, const Space& space) { return divisors(left(layout, space)); }

template <int Layout::*member>
void set_degree(Layout& layout, std::int64_t value, const Space&) {
  layout.*member = static_cast<int>(value);
}

Values zeros(const Layout& layout, const Space&) {
  return layout.shard > 1 ? Values{1, 2, 3} : Values{1};
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
  const bool gathers = layout.shard > 1 && layout.zero == 3 && !layout.shared_window;
  if (!gathers) return {1};
  Values values{0, 1, 2};
  if (space.fixed.prefetch.value_or(0) > 2) values.push_back(*space.fixed.prefetch);
  return values;
}

constexpr Axis kAxes[] = {
    {"pp", degrees, set_degree<&Layout::pp>},
    {"tp", degrees, set_degree<&Layout::tp>},
    {"cp", degrees, set_degree<&Layout::cp>},
    {"shard", degrees, set_degree<&Layout::shard>},
    {"dp", [](const Layout& layout, const Space& space) { return Values{left(layout, space)}; },
     set_degree<&Layout::dp>},
    {"zero", zeros, set_degree<&Layout::zero>},
    {"micro_batch", micro_batches, set_micro_batch},
    {"recompute",
     [](const Layout&, const Space&) {
       return Values{0, 1, 2};
     },
     [](Layout& layout, std::int64_t value, const Space&) {
       layout.recompute = static_cast<recipe::Recompute>(value);
     }},
    {"prefetch", prefetches, set_degree<&Layout::prefetch>},
};

}  // namespace

std::span<const Axis> axes() { return kAxes; }

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
