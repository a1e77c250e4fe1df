#pragma once

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
  std::int64_t num_tokens() const { return rows * sequence; }
  std::int64_t num_targets() const;
  bool operator==(const MicroBatch&) const = default;
};

// Rows that one document fills each; positions and documents, but no tokens and targets yet.
MicroBatch rows_of_one_document(std::int64_t rows, std::int64_t sequence);

}  // namespace ptrain::data
