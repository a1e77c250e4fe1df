#pragma once

#include "core/program/memory.h"

namespace ptrain::program {

// Bytes that one part of a block, attention or feed-forward, takes beside the stash.
struct PartScratch {
  std::int64_t forward = 0;   // for the time of a call
  std::int64_t again = 0;     // where it is computed again
  std::int64_t kept = 0;      // what its queued products read, until they are multiplied
  std::int64_t backward = 0;  // beside that, and beside the gradient of what its norm gave
};

// With one document a row. Both work on all tokens of a rank: not for parts of the tensor axis.
PartScratch latent_attention_scratch(const MemoryContext& context);
PartScratch experts_scratch(const MemoryContext& context);

}  // namespace ptrain::program
