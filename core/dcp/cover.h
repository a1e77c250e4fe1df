#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/dcp/boxes.h"

namespace ptrain::dcp {

// What keeps boxes from covering each element of a tensor exactly once, for people: the first
// elements, flattened, that no box holds or that two do. Nothing: they do. Costs n log n for n
// boxes of runs or of slices.
std::optional<std::string> uncovered(const Sizes& shape, std::vector<const Box*> boxes);

}  // namespace ptrain::dcp
