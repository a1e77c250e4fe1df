#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/mesh/layout.h"
#include "launcher/plan/space.h"

namespace ptrain::plan {

// One free choice of a layout. Axes are set in the order of the list, so the values of one may
// follow from those before it: degrees divide the ranks that are left, micro-batches the rows.
struct Axis {
  std::string_view name;  // as the recipe and the report write it
  std::vector<std::int64_t> (*values)(const mesh::Layout& before, const Space& space);
  void (*set)(mesh::Layout& layout, std::int64_t value, const Space& space);
};

// Every choice there is: degrees outermost first, then what a rank does with its rows.
std::span<const Axis> axes();
// How many there are up to the axis of that name, it included.
std::size_t num_axes_until(std::string_view name);
// The last of the degrees, which say what a rank holds; behind it come choices of what it does.
inline constexpr std::string_view kLastDegree = "etp";

// The ways to deal the layers of a layout out to the stages of its pipeline: with each `virtual`
// and `schedule` that the space has for it.
std::vector<mesh::Layout> pipelines_of(const mesh::Layout& layout, const Space& space);

// Groups gathered ahead that the planner tries by itself: from none up to so many.
inline constexpr int kMostPrefetch = 2;

std::vector<std::int64_t> divisors(std::int64_t number);  // ascending

}  // namespace ptrain::plan
