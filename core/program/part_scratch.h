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
std::int64_t gathered_bytes(const MemoryContext& context);
std::int64_t summed_bytes(const MemoryContext& context);

// With one document a row.
PartScratch latent_attention_scratch(const MemoryContext& context);
// `keep`: of the stash. Rows that experts get are as many as can come.
PartScratch experts_scratch(const MemoryContext& context, Keep keep);

}  // namespace ptrain::program
