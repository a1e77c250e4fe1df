#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/packing/context_split.h"

namespace ptrain::data {

// Tokens [begin, end) of a micro-batch are one document, or the padding at a row's end.
struct DocumentSpan {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const DocumentSpan&) const = default;
};

inline constexpr std::int32_t kNoTarget = -1;

// What ranks that share rows know of all tokens of these.
struct SharedRows {
  std::vector<std::int64_t> tokens;  // of the whole rows, in the order of the ranks that hold them
  std::vector<DocumentSpan> documents;    // of the whole rows
  std::vector<std::int64_t> num_targets;  // of each document
  bool operator==(const SharedRows&) const = default;
};

// The rows of one FORWARD, laid end to end: token t = row * sequence + column.
struct MicroBatch {
  std::int64_t rows = 0;
  std::int64_t sequence = 0;
  std::vector<std::int32_t> tokens;     // [rows * sequence]
  std::vector<std::int32_t> targets;    // the next token of the same document, or kNoTarget
  std::vector<std::int32_t> positions;  // within the piece of the document, from 0
  std::vector<DocumentSpan> documents;  // ascending, covering all tokens, never across rows
  // Where ranks share rows (context_part.h): what each rank of the ring holds, in tokens of the
  // whole rows; what this one's holds, end to end, is what this and its ulysses ranks have equal
  // parts of.
  std::vector<packing::ContextPieces> ring_pieces = {};
  SharedRows shared_rows = {};  // empty where this rank has whole rows
  std::int64_t num_tokens() const { return rows * sequence; }
  std::int64_t num_targets() const;
  bool operator==(const MicroBatch&) const = default;
};

// Of one document; 0 where there are no targets yet.
inline std::int64_t num_targets_in(const MicroBatch& batch, const DocumentSpan& span) {
  if (batch.targets.empty()) return 0;
  return std::count_if(batch.targets.begin() + span.begin, batch.targets.begin() + span.end,
                       [](std::int32_t target) { return target != kNoTarget; });
}

// Rows that one document fills each; positions and documents, but no tokens and targets yet.
MicroBatch rows_of_one_document(std::int64_t rows, std::int64_t sequence);

}  // namespace ptrain::data
