#pragma once

#include <cstdint>

#include "core/model/architecture.h"
#include "engine/data/batch.h"

namespace ptrain::data {

// The ranks that share the tokens of a micro-batch. A ring has the pieces that
// packing::choose_split gives each of its ranks; of these pieces, end to end, `ulysses` ranks hold
// equal parts.
struct ContextRanks {
  model::AxisPlace ring, ulysses;
  std::int64_t count() const { return std::int64_t{ring.size} * ulysses.size; }
};

// What one of them holds of whole rows, whose tokens must divide over all. Positions stay those in
// the document.
MicroBatch context_part(const MicroBatch& whole, const ContextRanks& ranks);

// The tokens of the whole rows that a part holds, in the order of its own.
std::vector<DocumentSpan> tokens_of_part(const MicroBatch& part, const ContextRanks& ranks);

// Who holds a token of whole rows, and where in its part.
struct TokenPlace {
  int cp_rank = 0;
  std::int64_t token = 0;
};
TokenPlace place_of_token(const MicroBatch& whole, const ContextRanks& ranks, std::int64_t token);

}  // namespace ptrain::data
