#pragma once

#include "core/program/memory.h"

namespace ptrain::plan {

// Adds what the program cannot know but a rank needs: kTemporary (the working memory of one layer
// and of a chunk of logits) and kRuntime (libraries, MPI). Estimates, so that a layout is refused
// before it is tried; the other classes are exact.
void add_estimates(program::BytesByClass& bytes, const program::MemoryContext& context);

}  // namespace ptrain::plan
