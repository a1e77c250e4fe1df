#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptrain::packing {

struct Bins {
  std::int64_t count = 0;
  std::vector<std::int64_t> bin_of;      // for each item
  std::vector<std::int64_t> placed;      // the items in the order of placing
};

// Best-fit decreasing: each item, longest first, goes where the least space is left over. Items of
// one length keep their order. Every length must be in [1, capacity]. Cost: O(items + capacity) for
// sorting by counting, then O(log64 capacity) an item.
Bins best_fit_decreasing(std::span<const std::int64_t> lengths, std::int64_t capacity);

}  // namespace ptrain::packing
