#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/batch.h"

namespace ptrain::parity {

enum class RowKind {
  kPacked,         // documents of uneven lengths, and some padding
  kOneDocument,    // one a row, and padding
  kWholeDocument,  // one fills each row
  kShort,          // of two tokens, but for one that fills the first of four rows
  // What the loader makes of documents of uneven lengths, by a strategy of packing.
  kNextFit,
  kFirstFit,
  kBestFit
};

// `num_rows` rows of random tokens below `vocabulary`; the same for any layout.
std::vector<data::MicroBatch> toy_rows(std::int64_t num_rows, std::int64_t sequence,
                                       std::int32_t vocabulary, std::uint64_t seed,
                                       RowKind kind = RowKind::kPacked);

// Rows [first, first + count) laid end to end.
data::MicroBatch join_rows(const std::vector<data::MicroBatch>& rows, std::int64_t first,
                           std::int64_t count);

}  // namespace ptrain::parity
