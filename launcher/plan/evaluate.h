#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "launcher/plan/parts.h"
#include "launcher/plan/search.h"

namespace ptrain::plan {

// Compiles, counts and simulates one layout, whatever its memory.
Result<Candidate> evaluate(const SearchInput& input, const mesh::Layout& layout);

// Compiles the candidate's layout and fills in its bytes; and its times, by simulation, where these
// are no more than `memory`. `parts`: of the layout. Errors (kUsage): those of program::compile.
Status simulate_candidate(const SearchInput& input, std::span<const Part> parts,
                          std::int64_t memory, Candidate& candidate);

// The ranks of a layout by the programs that they run, which are those of `parts`.
Result<std::vector<run::ClassPrediction>> classes_of(const SearchInput& input,
                                                     const mesh::Layout& layout,
                                                     std::span<const Part> parts,
                                                     std::span<const program::Program> programs);

// Bytes of all classes of one rank.
std::int64_t total_bytes(const program::BytesByClass& bytes);
// What one rank may hold: the smallest node's memory over the ranks of a node.
std::int64_t rank_memory(const SearchInput& input);

}  // namespace ptrain::plan
