#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/recipe/data.h"

namespace ptrain::plan {

// Documents by length: (inputs, how many come in an epoch: a fraction where a source's weight is).
using LengthHistogram = std::vector<std::pair<std::int64_t, double>>;

// What one attention head does, mean over the tokens of rows, padding included. It takes the
// queries of a document block by block and multiplies them with all keys up to the block's last
// query.
struct AttentionLoad {
  double blocks = 0;
  double pairs = 0;
  bool operator==(const AttentionLoad&) const = default;
};

// Of rows without padding. Documents are cut into pieces of at most `sequence` tokens. No lengths:
// every row is one document.
AttentionLoad attention_load(std::int64_t sequence, const LengthHistogram& lengths,
                             std::int64_t block_rows);

// Of rows as they are packed: padding attends to nothing.
AttentionLoad packed_attention_load(std::int64_t sequence, const LengthHistogram& lengths,
                                    const recipe::Packing& packing, std::int64_t block_rows);

// Tokens over the room of the rows that they are packed in, from one window of documents whose
// lengths are spread as those of all are. 1 without lengths.
double row_fill(std::int64_t sequence, const LengthHistogram& lengths,
                const recipe::Packing& packing);

}  // namespace ptrain::plan
