#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>

#include "core/packing/bins.h"

namespace ptrain::packing {
namespace {

constexpr std::int64_t kNone = -1;

// A set of numbers in [0, size): one bit each, and levels above that say which words are not zero.
class NumberSet {
 public:
  explicit NumberSet(std::size_t size) {
    do {
      size = (size + 63) / 64;
      levels_.emplace_back(size, 0);
    } while (size > 1);
  }

  void insert(std::size_t number) {
    for (auto& level : levels_) {
      level[number / 64] |= bit(number);
      number /= 64;
    }
  }

  void erase(std::size_t number) {
    for (auto& level : levels_) {
      if ((level[number / 64] &= ~bit(number)) != 0) return;
      number /= 64;
    }
  }

  // The smallest member that is not below `number`, or kNone.
  std::int64_t first_from(std::size_t number) const {
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      const auto& level = levels_[depth];
      if (number / 64 >= level.size()) return kNone;
      const std::uint64_t rest = level[number / 64] & (~std::uint64_t{0} << (number % 64));
      if (rest != 0) return static_cast<std::int64_t>(descend(depth, lowest(number, rest)));
      number = number / 64 + 1;
    }
    return kNone;
  }

 private:
  static std::uint64_t bit(std::size_t number) { return std::uint64_t{1} << (number % 64); }
  static std::size_t lowest(std::size_t number, std::uint64_t word) {
    return number / 64 * 64 + static_cast<std::size_t>(std::countr_zero(word));
  }

  std::size_t descend(std::size_t depth, std::size_t number) const {
    while (depth-- > 0) number = lowest(number * 64, levels_[depth][number]);
    return number;
  }

  std::vector<std::vector<std::uint64_t>> levels_;
};

// The bins by the space left in them; among equals the one changed last comes first.
class OpenBins {
 public:
  explicit OpenBins(std::int64_t capacity)
      : spaces_(static_cast<std::size_t>(capacity) + 1),
        head_(static_cast<std::size_t>(capacity) + 1, kNone),
        capacity_(capacity) {}

  // The bin that takes an item of this length.
  std::int64_t place(std::int64_t length) {
    std::int64_t space = spaces_.first_from(static_cast<std::size_t>(length));
    const std::int64_t bin = space == kNone ? open() : take(static_cast<std::size_t>(space));
    if (space == kNone) space = capacity_;
    if (space > length) put(bin, static_cast<std::size_t>(space - length));
    return bin;
  }

  std::int64_t count() const { return static_cast<std::int64_t>(next_.size()); }

 private:
  std::int64_t open() {
    next_.push_back(kNone);
    return count() - 1;
  }

  std::int64_t take(std::size_t space) {
    const std::int64_t bin = head_[space];
    head_[space] = next_[static_cast<std::size_t>(bin)];
    if (head_[space] == kNone) spaces_.erase(space);
    return bin;
  }

  void put(std::int64_t bin, std::size_t space) {
    next_[static_cast<std::size_t>(bin)] = head_[space];
    head_[space] = bin;
    spaces_.insert(space);
  }

  NumberSet spaces_;
  std::vector<std::int64_t> head_;  // for each space the first bin
  std::vector<std::int64_t> next_;  // for each bin the next one of the same space
  std::int64_t capacity_;
};

// Items by decreasing length, by counting; stable.
std::vector<std::int64_t> longest_first(std::span<const std::int64_t> lengths,
                                        std::int64_t capacity) {
  std::vector<std::size_t> begin(static_cast<std::size_t>(capacity) + 1, 0);
  for (const std::int64_t length : lengths) {
    assert(length >= 1 && length <= capacity);
    ++begin[static_cast<std::size_t>(capacity - length) + 1];
  }
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<std::int64_t> items(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i)
    items[begin[static_cast<std::size_t>(capacity - lengths[i])]++] = static_cast<std::int64_t>(i);
  return items;
}

}  // namespace

Bins best_fit_decreasing(std::span<const std::int64_t> lengths, std::int64_t capacity) {
  const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  capacity = std::min(capacity, total);  // more space than items costs memory and changes nothing
  if (lengths.empty()) return {};
  Bins bins;
  bins.placed = longest_first(lengths, capacity);
  bins.bin_of.resize(lengths.size());
  OpenBins open(capacity);
  for (const std::int64_t item : bins.placed) {
    const auto i = static_cast<std::size_t>(item);
    bins.bin_of[i] = open.place(lengths[i]);
  }
  bins.count = open.count();
  return bins;
}

}  // namespace ptrain::packing
