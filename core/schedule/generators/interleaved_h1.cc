#include "core/schedule/generators/generators.h"
#include "core/schedule/generators/longest_path.h"

namespace ptrain::schedule {

Result<Schedule> interleaved_h1(const Problem& problem) {
  return longest_path_first(problem, Placement::kZigzag, 0);
}

// The first forward has a slot of its own at the head of the grid: the lists are those of
// interleaved_h1.
Result<Schedule> interleaved_one_f_one_b_plus_one(const Problem& problem) {
  return interleaved_h1(problem);
}

}  // namespace ptrain::schedule
