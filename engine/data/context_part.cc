#include "engine/data/context_part.h"

#include <algorithm>

#include "engine/base/engine_error.h"
#include "engine/base/planted.h"

namespace ptrain::data {
namespace {

using packing::ContextPiece;
using packing::ContextPieces;

std::vector<ContextPieces> pieces_of_ring(const MicroBatch& whole, int num_ranks) {
  std::vector<std::int64_t> ends;
  for (const DocumentSpan& span : whole.documents) ends.push_back(span.end);
  return packing::split_row(ends, num_ranks, packing::choose_split(ends, num_ranks));
}

void append(const std::vector<std::int32_t>& from, const DocumentSpan& span,
            std::vector<std::int32_t>& to) {
  if (from.empty()) return;  // rows without tokens or targets
  to.insert(to.end(), from.begin() + span.begin, from.begin() + span.end);
}

void append(const MicroBatch& whole, const DocumentSpan& span, MicroBatch& part) {
  const std::int64_t begin = part.documents.empty() ? 0 : part.documents.back().end;
  part.documents.push_back({begin, begin + span.end - span.begin});
  append(whole.tokens, span, part.tokens);
  append(whole.targets, span, part.targets);
  append(whole.positions, span, part.positions);
  if (!planted(Bug::kLocalPositions)) return;
  for (std::int64_t i = begin; i < std::ssize(part.positions); ++i)
    part.positions[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i - begin);
}

// Of the ranks in their order.
std::vector<std::int64_t> tokens_of_ranks(const MicroBatch& part, ContextRanks ranks) {
  std::vector<std::int64_t> tokens;
  for (ranks.ring.rank = 0; ranks.ring.rank < ranks.ring.size; ++ranks.ring.rank)
    for (ranks.ulysses.rank = 0; ranks.ulysses.rank < ranks.ulysses.size; ++ranks.ulysses.rank)
      for (const DocumentSpan& span : tokens_of_part(part, ranks))
        for (std::int64_t token = span.begin; token < span.end; ++token) tokens.push_back(token);
  return tokens;
}

std::vector<std::int64_t> targets_of_documents(const MicroBatch& whole) {
  std::vector<std::int64_t> counts;
  for (const DocumentSpan& span : whole.documents) counts.push_back(num_targets_in(whole, span));
  return counts;
}

}  // namespace

MicroBatch context_part(const MicroBatch& whole, const ContextRanks& ranks) {
  PT_CHECK(whole.sequence % ranks.count() == 0);
  MicroBatch part;
  part.rows = whole.rows;
  part.sequence = whole.sequence / ranks.count();
  part.ring_pieces = pieces_of_ring(whole, ranks.ring.size);
  for (const DocumentSpan& span : tokens_of_part(part, ranks)) append(whole, span, part);
  part.shared_rows = {tokens_of_ranks(part, ranks), whole.documents, targets_of_documents(whole)};
  return part;
}

std::vector<DocumentSpan> tokens_of_part(const MicroBatch& part, const ContextRanks& ranks) {
  if (part.ring_pieces.empty()) return {{0, part.num_tokens()}};
  const std::int64_t begin = ranks.ulysses.rank * part.num_tokens();
  const std::int64_t end = begin + part.num_tokens();
  std::vector<DocumentSpan> spans;
  std::int64_t place = 0;
  for (const ContextPiece& piece : part.ring_pieces[static_cast<std::size_t>(ranks.ring.rank)]) {
    const std::int64_t length = piece.length();
    const std::int64_t first = std::max(begin, place), last = std::min(end, place + length);
    if (first < last) spans.push_back({piece.begin + first - place, piece.begin + last - place});
    place += length;
  }
  return spans;
}

TokenPlace place_of_token(const MicroBatch& whole, const ContextRanks& ranks, std::int64_t token) {
  const auto pieces = pieces_of_ring(whole, ranks.ring.size);
  const std::int64_t tokens = whole.num_tokens() / ranks.count();
  for (int ring = 0; ring < ranks.ring.size; ++ring) {
    std::int64_t place = 0;
    for (const ContextPiece& piece : pieces[static_cast<std::size_t>(ring)]) {
      if (piece.begin <= token && token < piece.end) {
        place += token - piece.begin;
        return {ring * ranks.ulysses.size + static_cast<int>(place / tokens), place % tokens};
      }
      place += piece.length();
    }
  }
  throw EngineError(ExitCode::kBug, "a token that no rank of the ring holds");
}

}  // namespace ptrain::data
