#include "core/packing/bins.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>

namespace ptrain::packing {
namespace {

// The space left in each bin of a fixed number, as a tournament tree: each node holds the larger of
// its two children, the bins are the leaves.
class Spaces {
 public:
  Spaces(std::size_t bins, std::int64_t capacity)
      : leaves_(std::bit_ceil(std::max<std::size_t>(bins, 1))), largest_(2 * leaves_, capacity) {}

  std::size_t first_with(std::int64_t space) const {
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (largest_[2 * node] >= space ? 0 : 1);
    return node - leaves_;
  }

  void fill(std::size_t bin, std::int64_t length) {
    std::size_t node = bin + leaves_;
    largest_[node] -= length;
    while ((node /= 2) > 0) largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]);
  }

 private:
  std::size_t leaves_;
  std::vector<std::int64_t> largest_;
};

Bins in_order(std::size_t items) {
  Bins bins;
  bins.bin_of.reserve(items);
  bins.placed.resize(items);
  std::iota(bins.placed.begin(), bins.placed.end(), 0);
  return bins;
}

}  // namespace

Bins pack(Strategy strategy, std::span<const std::int64_t> lengths, std::int64_t capacity) {
  switch (strategy) {
    case Strategy::kNextFit:
      return next_fit(lengths, capacity);
    case Strategy::kFirstFit:
      return first_fit(lengths, capacity);
    case Strategy::kBestFitDecreasing:
      break;
  }
  return best_fit_decreasing(lengths, capacity);
}

Bins next_fit(std::span<const std::int64_t> lengths, std::int64_t capacity) {
  Bins bins = in_order(lengths.size());
  std::int64_t space = 0;
  for (const std::int64_t length : lengths) {
    assert(length >= 1 && length <= capacity);
    if (length > space) {
      ++bins.count;
      space = capacity;
    }
    space -= length;
    bins.bin_of.push_back(bins.count - 1);
  }
  return bins;
}

Bins first_fit(std::span<const std::int64_t> lengths, std::int64_t capacity) {
  Bins bins = in_order(lengths.size());
  Spaces spaces(lengths.size(), capacity);
  for (const std::int64_t length : lengths) {
    assert(length >= 1 && length <= capacity);
    const std::size_t bin = spaces.first_with(length);
    spaces.fill(bin, length);
    bins.bin_of.push_back(static_cast<std::int64_t>(bin));
    bins.count = std::max(bins.count, static_cast<std::int64_t>(bin) + 1);
  }
  return bins;
}

}  // namespace ptrain::packing
