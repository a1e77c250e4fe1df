#pragma once

#include <cstdint>
#include <vector>

#include "launcher/plan/search.h"

namespace ptrain::plan {

// What an axis whose ranks share rows or experts (pp, tp, cp, ep) must save of a step to be worth
// its while. Of pairs of layouts that differ by two to five per cent, models of this kind order one
// in four wrongly; a plainer layout depends on less, and its memory is easier to foresee.
inline constexpr double kAxisWorth = 0.05;

// Of pp, tp, cp and ep.
int num_axes(const mesh::Layout& layout);

// By what layouts are ordered: as if each such axis above 1 took kAxisWorth more of a step. Adding
// nothing that depends on other layouts, it orders bounds as it orders times.
double weighed_seconds(const mesh::Layout& layout, double seconds);

// Puts the best first; `memory`: of a rank.
void rank_all(std::vector<Candidate>& candidates, std::int64_t memory);

// Whether `a` is plainer than `b`, of layouts that are alike otherwise.
bool is_plainer(const mesh::Layout& a, const mesh::Layout& b);

}  // namespace ptrain::plan
