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

// How many micro-batches of a step tell what all of them take: it repeats itself from there on.
std::int64_t counted_micro_batches(const mesh::Layout& layout);

// The ranks of a layout by the programs that they run, which are those of `parts`. Errors: those of
// program::compile and program::validate_places.
Result<std::vector<run::ClassPrediction>> classes_of(const SearchInput& input,
                                                     const mesh::Layout& layout,
                                                     std::span<const Part> parts);

// What one rank may hold: the smallest node's memory over the ranks of a node.
std::int64_t rank_memory(const SearchInput& input);

}  // namespace ptrain::plan
