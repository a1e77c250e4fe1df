#pragma once

#include "core/program/keep.h"
#include "core/program/memory.h"

namespace ptrain::program {

// Bytes that one part of a block, attention or feed-forward, takes beside the stash.
struct PartScratch {
  std::int64_t forward = 0;   // for the time of a call
  std::int64_t again = 0;     // where it is computed again
  std::int64_t kept = 0;      // what its queued products read, until they are multiplied
  std::int64_t gathered = 0;  // the same, but from when they are queued: rows of other ranks
  std::int64_t backward = 0;  // beside `kept`, and beside the gradient of what its norm gave
};

// What a part takes where ranks of the tensor axis share its tokens: all rows of what a matrix
// reads, or of its sums.
std::int64_t gathered_bytes(const MemoryContext& context, DType compute_dtype);
std::int64_t summed_bytes(const MemoryContext& context);

// In layers of `compute_dtype`; with whole documents, as attention_scratch.h.
PartScratch latent_attention_scratch(const MemoryContext& context, DType compute_dtype);
// `keep`: of the stash. Rows that experts get are as many as MemoryContext::expert_load says.
PartScratch experts_scratch(const MemoryContext& context, DType compute_dtype, Keep keep);

}  // namespace ptrain::program
