#include "core/packing/context_split.h"

#include <algorithm>

namespace ptrain::packing {
namespace {

std::int64_t begin_of(std::span<const std::int64_t> ends, std::size_t document) {
  return document == 0 ? 0 : ends[document - 1];
}

void add_piece(ContextPieces& pieces, ContextPiece piece) {
  if (piece.begin == piece.end) return;
  const bool continues = !pieces.empty() && pieces.back().document == piece.document &&
                         pieces.back().end == piece.begin;
  if (continues) {
    pieces.back().end = piece.end;
  } else {
    pieces.push_back(piece);
  }
}

// The documents of tokens [begin, end).
void add_range(ContextPieces& pieces, std::span<const std::int64_t> ends, std::int64_t begin,
               std::int64_t end) {
  auto document = static_cast<std::size_t>(std::ranges::upper_bound(ends, begin) - ends.begin());
  for (; begin < end; ++document) {
    const std::int64_t stop = std::min(end, ends[document]);
    add_piece(pieces, {static_cast<int>(document), begin, stop});
    begin = stop;
  }
}

std::vector<ContextPieces> split_whole(std::span<const std::int64_t> ends, std::size_t num_ranks) {
  const std::size_t num_chunks = 2 * num_ranks;
  const std::int64_t chunk = ends.back() / static_cast<std::int64_t>(num_chunks);
  std::vector<ContextPieces> ranks(num_ranks);
  for (std::size_t i = 0; i < num_chunks; ++i) {
    const auto begin = static_cast<std::int64_t>(i) * chunk;
    add_range(ranks[std::min(i, num_chunks - 1 - i)], ends, begin, begin + chunk);
  }
  return ranks;
}

// Chunks of a document's `length` tokens, which differ by one at most. What does not divide goes to
// the ranks with the fewest tokens up to now: so after each document no two ranks differ by more
// than one token, and at the end by none.
std::vector<std::int64_t> chunk_sizes(std::int64_t length, std::vector<std::int64_t>& tokens) {
  const std::size_t num_chunks = 2 * tokens.size();
  std::vector<std::int64_t> sizes(num_chunks, length / static_cast<std::int64_t>(num_chunks));
  for (std::int64_t left = length % static_cast<std::int64_t>(num_chunks); left > 0; --left) {
    const auto least = std::ranges::min_element(tokens);
    const auto rank = static_cast<std::size_t>(least - tokens.begin());
    const bool second = sizes[rank] > sizes[num_chunks - 1 - rank];
    sizes[second ? num_chunks - 1 - rank : rank] += 1;
    *least += 1;
  }
  return sizes;
}

std::vector<ContextPieces> split_each(std::span<const std::int64_t> ends, std::size_t num_ranks) {
  std::vector<ContextPieces> ranks(num_ranks);
  std::vector<std::int64_t> tokens(num_ranks);  // beyond what all ranks have
  for (std::size_t document = 0; document < ends.size(); ++document) {
    std::int64_t begin = begin_of(ends, document);
    const auto sizes = chunk_sizes(ends[document] - begin, tokens);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::size_t rank = std::min(i, sizes.size() - 1 - i);
      add_piece(ranks[rank], {static_cast<int>(document), begin, begin + sizes[i]});
      begin += sizes[i];
    }
  }
  return ranks;
}

}  // namespace

std::vector<ContextPieces> split_row(std::span<const std::int64_t> ends, int num_ranks,
                                     ContextSplit split) {
  const auto ranks = static_cast<std::size_t>(num_ranks);
  return split == ContextSplit::kPerRow ? split_whole(ends, ranks) : split_each(ends, ranks);
}

bool can_split(std::span<const std::int64_t> ends, int num_ranks, ContextSplit split) {
  return split == ContextSplit::kPerDocument || ends.back() % (2 * num_ranks) == 0;
}

std::int64_t attended_pairs(std::span<const std::int64_t> ends, const ContextPieces& pieces) {
  std::int64_t pairs = 0;
  for (const ContextPiece& piece : pieces) {
    const std::int64_t first = begin_of(ends, static_cast<std::size_t>(piece.document));
    const std::int64_t before = piece.begin - first, size = piece.length();
    pairs += size * before + size * (size + 1) / 2;
  }
  return pairs;
}

ContextSplit choose_split(std::span<const std::int64_t> ends, int num_ranks) {
  if (!can_split(ends, num_ranks, ContextSplit::kPerRow)) return ContextSplit::kPerDocument;
  const auto busiest = [&](ContextSplit split) {
    std::int64_t most = 0;
    for (const auto& pieces : split_row(ends, num_ranks, split))
      most = std::max(most, attended_pairs(ends, pieces));
    return most;
  };
  const std::int64_t by_document = busiest(ContextSplit::kPerDocument);
  const bool row_costs_little = busiest(ContextSplit::kPerRow) <= by_document + by_document / 20;
  return row_costs_little ? ContextSplit::kPerRow : ContextSplit::kPerDocument;
}

}  // namespace ptrain::packing
