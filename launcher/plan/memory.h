#pragma once

#include "core/program/memory.h"

namespace ptrain::plan {

// Adds kTemporary (program::temporary_bytes) and what no program knows but a rank needs: kRuntime
// (libraries, MPI), an estimate, so that a layout is refused before it is tried.
void add_estimates(program::BytesByClass& bytes, const program::MemoryContext& context);

}  // namespace ptrain::plan
