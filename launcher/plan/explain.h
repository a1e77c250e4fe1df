#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "launcher/plan/search.h"

namespace ptrain::plan {

// The layout with every choice that tells it from the others: mesh::to_string and the prefetch
// where it matters.
std::string name_of(const mesh::Layout& layout);

// Rejected layouts counted by reason, most frequent first, with the one that came closest.
std::vector<run::Rejection> summarize(const std::vector<Rejected>& rejected);

// Why the first stands before the second, in one sentence. Empty when there is no second.
std::string why_first(const Ranking& ranking);

// Why the first computes something again: what that saves and costs beside the same layout that
// keeps all. Empty when it keeps all.
std::string why_recompute(const Ranking& ranking);

// How much of the space was looked into, and how.
std::string how_searched(const Effort& effort);

// What the first would need if the experts of one rank got all tokens. Empty without such experts.
std::string experts_bound(const Ranking& ranking);

// Nothing is left for a shape: what is short, by how much, what would help (kNothingFits).
Error nothing_fits(const SearchInput& input, const Ranking& ranking);

}  // namespace ptrain::plan
