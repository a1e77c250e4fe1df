#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/run/plan.h"
#include "launcher/plan/cost/action_cost.h"
#include "launcher/plan/enumerate.h"
#include "launcher/plan/parts.h"

namespace ptrain::plan {

struct Candidate {
  mesh::Layout layout;
  run::Prediction predicted;
  program::BytesByClass bytes{};            // of the fullest rank
  std::array<double, kNumTerms> terms_s{};  // of rank 0
  bool operator==(const Candidate&) const = default;
};

// One shape's layouts, best first, and those that are out.
struct Ranking {
  std::string shape;
  std::vector<Candidate> ranked;
  std::vector<Rejected> rejected;
};

struct SearchInput {
  const model::Architecture& architecture;
  const recipe::Shape& shape;
  const recipe::Parallel& fixed;
  const cluster::Cluster& cluster;
  const Placement& placement;
  AttentionLoad attention;
  bool keeps_copy = false;        // recipe::keeps_copy
  std::string schedule_csv = {};  // of the file that `fixed` names as schedule
};

// Each layout of the space is ranked or rejected, exactly once. What cannot fit by its parameters
// and states alone is not compiled, and what does not fit is not simulated. Offloading only takes
// time: unless the recipe fixes it, layouts that offload are looked into where no other fits.
// Layouts within kTie of the fastest are ordered by memory (in eighths of what a rank may have),
// then by how plain they are.
Result<Ranking> search(const SearchInput& input);
// Pairs of layouts that differ by less are ordered wrongly about one time in three by models of
// this kind.
inline constexpr double kTie = 0.02;

// Compiles, counts and simulates one layout, whatever its memory.
Result<Candidate> evaluate(const SearchInput& input, const mesh::Layout& layout);

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
