#pragma once

#include "core/program/memory.h"

namespace ptrain::program {

// Bytes that attention itself takes for the time of a call, from queries, keys and values to what
// the output matrix reads, and back; where ranks share rows with what they exchange.
struct AttentionScratch {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};

// In layers of `compute_dtype`, with one document a row; in a ring, the most that any documents
// take.
AttentionScratch attention_scratch(const MemoryContext& context, DType compute_dtype);

}  // namespace ptrain::program
