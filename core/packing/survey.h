#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/packing/strategy.h"

namespace ptrain::packing {

// Documents of `least` to 2 * least - 1 tokens.
struct LengthClass {
  std::int64_t least = 1;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  bool operator==(const LengthClass&) const = default;
};

struct Packed {
  Strategy strategy = Strategy::kBestFitDecreasing;
  std::int64_t rows = 0;
  double efficiency = 0;  // tokens / (rows x capacity)
  bool operator==(const Packed&) const = default;
};

// What a list of document lengths looks like, and how well each strategy packs it.
struct Survey {
  std::int64_t capacity = 0;
  std::int64_t documents = 0;  // with at least one token
  std::int64_t tokens = 0;
  std::int64_t longest = 0;
  std::int64_t cut = 0;                // documents longer than a row
  std::vector<LengthClass> histogram;  // from the shortest class to the longest
  std::vector<Packed> packed;          // one a strategy
  bool operator==(const Survey&) const = default;
};

// Documents longer than a row are cut into pieces of `capacity` tokens and a rest. `window`
// documents in the order given are packed together; 0: all. Lengths are at least 0, capacity at
// least 1.
Survey survey(std::span<const std::int64_t> lengths, std::int64_t capacity,
              std::int64_t window = 0);

}  // namespace ptrain::packing
