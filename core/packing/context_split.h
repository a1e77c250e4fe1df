#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptrain::packing {

// How a ring of n ranks shares the tokens of a row. A causal token attends to all before it in its
// document, so what is shared is cut into 2 n chunks, and rank i takes chunks i and 2 n - 1 - i
// (zig-zag).
enum class ContextSplit {
  kPerRow,      // the row is cut: few pieces, even work where documents are long
  kPerDocument  // each document is cut: even work for any documents, more and smaller pieces
};

// Tokens [begin, end) of a row that lie in one document.
struct ContextPiece {
  int document = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t length() const { return end - begin; }
  bool operator==(const ContextPiece&) const = default;
};

// Pieces of one rank, ascending, none empty.
using ContextPieces = std::vector<ContextPiece>;

// Of each rank; every rank gets as many tokens. `ends`: where each document of the row ends,
// ascending, the last at the row's end. The row must be a multiple of num_ranks, and can_split.
std::vector<ContextPieces> split_row(std::span<const std::int64_t> ends, int num_ranks,
                                     ContextSplit split);

// For kPerRow the row must be a multiple of 2 num_ranks.
bool can_split(std::span<const std::int64_t> ends, int num_ranks, ContextSplit split);

// (query, key) pairs that the queries of `pieces` attend to.
std::int64_t attended_pairs(std::span<const std::int64_t> ends, const ContextPieces& pieces);

// The split whose busiest rank attends to fewer pairs; the row is cut where it costs at most a
// twentieth more.
ContextSplit choose_split(std::span<const std::int64_t> ends, int num_ranks);

}  // namespace ptrain::packing
