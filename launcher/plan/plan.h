#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/plan.h"
#include "launcher/cluster/cluster.h"
#include "launcher/plan/search.h"

namespace ptrain::plan {

struct PlanInput {
  recipe::Recipe recipe;  // resolved
  std::string recipe_folder;
  std::string recipe_hash;
  std::string build;
  cluster::Cluster cluster;
  LengthHistogram lengths;                       // of the training documents; empty: not known
  std::string no_lengths;                        // why they are not known, for people
  std::map<std::string, std::string> schedules;  // files that shapes name as schedules
};

// A plan with all that was considered.
struct Planning {
  run::Plan plan;
  std::string figures;            // where the times come from
  std::string documents;          // what was taken of their lengths
  std::vector<Ranking> rankings;  // one a shape
  std::vector<std::string>
      notes;  // what the user should know: assumed figures, fewer ranks than cores
};

// The best layout of each shape, on its own. Pure: the same input gives the same plan.
// Errors: kNothingFits; kUsage: what the recipe asks for does not exist on the cluster.
Result<Planning> plan_recipe(const PlanInput& input);

// Ranks, threads and nodes for a recipe. cluster.ranks_per_node 0: one rank a GPU, or where there
// is none a physical core; fewer where the recipe fixes dp and shard, or where the rows of a shape
// divide over fewer only.
Result<Placement> place_ranks(const recipe::Recipe& recipe, const cluster::Cluster& cluster,
                              std::vector<std::string>& notes);

// The layout wishes that hold for one shape.
const recipe::Parallel& parallel_of(const recipe::Recipe& recipe, const recipe::Shape& shape);

}  // namespace ptrain::plan
