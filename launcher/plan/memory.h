#pragma once

#include <cstdint>

#include "core/program/memory.h"

namespace ptrain::plan {

// Adds kTemporary (program::temporary_bytes) and what no program knows but a rank needs: kRuntime
// (libraries, MPI, and the rows of a step), an estimate, so that a layout is refused before it is
// tried.
void add_estimates(program::BytesByClass& bytes, const program::MemoryContext& context);
// Of a rank that loads so its rows of a step, `sequence` tokens each.
std::int64_t runtime_bytes(const mesh::Layout& layout, std::int64_t sequence);

// Rows that the fullest rank's experts are planned to get, as a multiple of an even share
// (MemoryContext::expert_load); 0 for models without experts. docs/plan-json.md tells users.
double expert_load(const model::Architecture& architecture);

}  // namespace ptrain::plan
