#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/packing/strategy.h"

namespace ptrain::packing {

// A run of one document's tokens [begin, end]: tokens begin .. end-1 are inputs, and the target of
// each is the token after it. So ranges that share one token, [0, 8] and [8, 12], make each target
// once.
struct Range {
  std::int64_t document = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t length() const { return end - begin; }  // inputs, and targets
  bool operator==(const Range&) const = default;
};

// What one packed row of `sequence` inputs holds, from its start; the rest is padding.
using Row = std::vector<Range>;

// A whole document of `num_tokens` tokens; empty when nothing of it can be a target.
Range whole_document(std::int64_t document, std::int64_t num_tokens);

// How the ranges of a window become rows.
struct Packer {
  Strategy strategy = Strategy::kBestFitDecreasing;
  std::int64_t sequence = 0;
  bool operator==(const Packer&) const = default;
};

// The rows of a window: ranges longer than a row are cut, the strategy fills the rows, and the rows
// are shuffled (lengths would otherwise come sorted) by a stream with this key.
std::vector<Row> pack_window(std::span<const Range> ranges, const Packer& packer,
                             std::uint64_t key);

// What rows [first, ...) hold, joined where ranges touch, by document and begin.
std::vector<Range> unused_ranges(std::span<const Row> rows, std::int64_t first);

}  // namespace ptrain::packing
