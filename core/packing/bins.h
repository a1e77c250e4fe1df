#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/packing/strategy.h"

namespace ptrain::packing {

struct Bins {
  std::int64_t count = 0;
  std::vector<std::int64_t> bin_of;  // for each item
  std::vector<std::int64_t> placed;  // the items in the order of placing
};

// Puts items into bins of `capacity`. Every length must be in [1, capacity]. The same items in the
// same order give the same bins on every machine.
Bins pack(Strategy strategy, std::span<const std::int64_t> lengths, std::int64_t capacity);

// Each item, in the order given, goes into the bin opened last, or else opens the next. O(items).
Bins next_fit(std::span<const std::int64_t> lengths, std::int64_t capacity);

// Each item, in the order given, goes into the first bin that has room. O(log bins) an item.
Bins first_fit(std::span<const std::int64_t> lengths, std::int64_t capacity);

// Each item, longest first, goes where the least space is left over. Items of one length keep their
// order. O(items + capacity) for sorting by counting, then O(log64 capacity) an item.
Bins best_fit_decreasing(std::span<const std::int64_t> lengths, std::int64_t capacity);

}  // namespace ptrain::packing
