#include "core/schedule/placement.h"

#include <array>

namespace ptrain::schedule {

std::string_view name_of(Placement placement) {
  constexpr std::array<std::string_view, 4> kNames = {"loop", "zigzag", "contiguous", "mirrored"};
  return kNames[static_cast<std::size_t>(placement)];
}

int rank_of_stage(Placement placement, int stage, const Problem& problem) {
  const int along = stage % problem.num_ranks;
  const bool backwards = stage / problem.num_ranks % 2 == 1;
  switch (placement) {
    case Placement::kLoop:
      return along;
    case Placement::kContiguous:
      return stage / problem.num_virtual;
    case Placement::kZigzag:
    case Placement::kMirrored:
      return backwards ? problem.num_ranks - 1 - along : along;
  }
  return -1;
}

}  // namespace ptrain::schedule
