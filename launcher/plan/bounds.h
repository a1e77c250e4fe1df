#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "launcher/plan/least_bytes.h"
#include "launcher/plan/least_time.h"

namespace ptrain::plan {

// The choices of a layout, in the order in which a search makes them. A layout that has come to a
// level has those up to it.
enum class Level { kNone, kDegrees, kZero, kMicroBatch, kSchedule, kRecompute, kPrefetch };
inline constexpr Level kLastLevel = Level::kPrefetch;
Level next_level(Level level);
std::size_t num_axes_of(Level level);  // that are set then (axes.h)

// Of all layouts that begin as one does.
struct Bound {
  double seconds = std::numeric_limits<double>::infinity();  // of those that may fit; unweighed
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();  // of a rank
  mesh::Layout smallest = {};  // the layout whose bound these bytes are
};

// In the unit of kMostWork: cutting so many parameters.
std::int64_t work_to_cut(std::int64_t num_parameters);

class Bounds {
 public:
  // All must outlive it. `memory`: of a rank, in bytes.
  Bounds(const SearchInput& input, const Space& space, Cuts& cuts, std::int64_t memory);
  Bounds(const Bounds&) = delete;  // its members refer to each other

  Bound of(const mesh::Layout& begun, Level level);
  // About what it takes to simulate a layout, and to compile the whole of its programs.
  std::int64_t work_to_simulate(const mesh::Layout& layout);
  std::int64_t work_to_compile(const mesh::Layout& layout);
  // What all of it took, in the unit of kMostWork.
  std::int64_t work() const;

 private:
  mesh::Layout fastest(mesh::Layout begun, Level level) const;
  mesh::Layout smallest(mesh::Layout begun, Level level) const;
  std::vector<recipe::Recompute> recomputes_of(const mesh::Layout& begun, Level level) const;
  double seconds_of(const mesh::Layout& layout, Level level);
  // By one pipeline, as its smallest and its fastest layout.
  void lower(Bound& bound, mesh::Layout small, mesh::Layout fast, Level level);

  const SearchInput& input_;
  const Space& space_;
  const std::int64_t memory_;
  Cuts& cuts_;
  Pipelines pipelines_;
  LeastBytes bytes_;
  LeastTime time_;
  std::int64_t num_stages_ = 0;  // of all layouts looked at
};

}  // namespace ptrain::plan
