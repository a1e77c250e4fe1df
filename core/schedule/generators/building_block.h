#pragma once

#include <array>
#include <vector>

#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// V schedules under a limit of memory (arXiv 2405.15362). Each rank repeats a block of six slots: a
// micro-batch's F on both chunks, I on both, two W. What comes before and after the steady part is
// then moved to earlier slots, as far as that needs no more memory than the steady part.

// The slots in which micro-batch 0 has F of the first chunk, F and I of the second, I of the first.
using BlockSlots = std::array<int, 4>;

// `first` is by rank. Different remainders by 6 keep the cells of a rank apart.
Schedule repeat_block(const std::vector<BlockSlots>& first, const Problem& problem);

}  // namespace ptrain::schedule
