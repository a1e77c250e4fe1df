#pragma once

#include <cstdint>
#include <vector>

#include "core/program/memory.h"

namespace ptrain::program {

// Where the whole gradients of each group lie in a rank's part of a shared window. Groups whose
// gradients are never there at once may share a place.
struct GradientPlaces {
  std::vector<std::int64_t> offsets;  // by group: elements from the part's start, 64-byte aligned
  std::int64_t elements = 0;          // of the part
};

// For the training program of the context's layout; the same on every rank.
GradientPlaces place_gradients(const MemoryContext& context);

}  // namespace ptrain::program
