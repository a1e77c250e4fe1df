#pragma once

#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// Adds the S of all ranks but that of the last stage: one for each B or I of that stage or, in a
// schedule that only goes forward, for each F. All ranks do it at the same time, so it stands where
// a rank is when the last stage begins that cell: by a clock, on which a rank begins no cell just
// before if all would wait for it longer than it idles. A list of all cells exists of which each
// rank's is a part and in which such a cell and its S are neighbours, so nobody waits for ever. The
// schedule must be one that ends, of one copy of the weights and whole micro-batches. O(cells x
// ranks).
Schedule add_shared_work(const Schedule& schedule);

}  // namespace ptrain::schedule
