#pragma once

#include <cstdint>
#include <string_view>

#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// Which stage is a rank's chunk: loop k*p+r; zigzag, where odd chunks run backwards over the ranks
// (two chunks make a V); contiguous r*v+k; mirrored, where a second copy of the weights lies on the
// ranks in the opposite order.
enum class Placement : std::uint8_t { kLoop, kZigzag, kContiguous, kMirrored };

std::string_view name_of(Placement placement);

// The rank of a stage, of the first copy of the weights.
int rank_of_stage(Placement placement, int stage, const Problem& problem);

}  // namespace ptrain::schedule
