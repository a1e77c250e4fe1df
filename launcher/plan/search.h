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
  program::BytesByClass bytes{};  // of the fullest rank, at the load of experts planned for
  std::int64_t most_bytes = 0;    // of it, were all tokens to choose its experts
  std::int64_t num_actions = 0;   // compiled for it
  std::array<double, kNumTerms> terms_s{};  // of rank 0
  bool operator==(const Candidate&) const = default;
};

// What a search looked into.
struct Effort {
  std::int64_t num_degrees = 0;         // legal choices of all degrees
  std::int64_t num_degrees_opened = 0;  // of them those whose options were looked into
  std::int64_t num_layouts = 0;         // legal layouts that this came to
  std::int64_t num_simulated = 0;       // of these
  std::int64_t num_left = 0;  // partial layouts that no bound rules out: there was no time for them
  std::int64_t work = 0;      // in the unit of kMostWork
  bool operator==(const Effort&) const = default;
};

// One shape's layouts, best first, and those that are out.
struct Ranking {
  std::string shape;
  std::vector<Candidate> ranked;
  std::vector<Rejected> rejected;
  Effort effort = {};
  std::int64_t memory = 0;  // that a rank may have
  double expert_load = 0;   // that memory is planned for (memory.h)
};

// How much a search does: some seconds. A unit is what compiling and simulating an action takes.
inline constexpr std::int64_t kMostWork = 6'000'000;

struct SearchInput {
  const model::Architecture& architecture;
  const recipe::Shape& shape;
  const recipe::Parallel& fixed;
  const cluster::Cluster& cluster;
  const Placement& placement;
  AttentionLoad attention;
  bool keeps_copy = false;        // recipe::keeps_copy
  std::string schedule_csv = {};  // of the file that `fixed` names as schedule
  // After so much work a search ends with the best that it has found. There is no clock, so that a
  // plan is the same everywhere.
  std::int64_t most_work = kMostWork;
};

// Layouts are chosen step by step (Level in bounds.h). Each that is whole is ranked or rejected,
// once (of very many rejected ones, one may stand for more: Rejected::count). A partial layout is
// rejected as one layout, the smallest that begins so, or not listed where its bound rules it out
// or time ran out (Effort). What cannot fit by its bound alone is not compiled, and what does not
// fit is not simulated. Offloading only takes time: unless the recipe fixes it, layouts that
// offload are looked into where no other fits. Best first by weighed_seconds (order.h). Those
// within kTie of the first are ordered by the number of axes that share rows or experts, then by
// memory (in eighths of what a rank may have), then by how plain they are.
Result<Ranking> search(const SearchInput& input);
// Pairs of layouts that differ by less are ordered wrongly about one time in three by models of
// this kind.
inline constexpr double kTie = 0.02;

}  // namespace ptrain::plan
