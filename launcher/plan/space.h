#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/model/architecture.h"
#include "core/recipe/recipe.h"

namespace ptrain::plan {

class Cuts;

// What one shape may be laid out over.
struct Space {
  int num_ranks = 1;
  std::int64_t rows = 0;       // of a step, all ranks
  recipe::Parallel fixed;      // what the recipe asks for; zero or empty: free
  bool shared_window = false;  // all ranks are on one node
  recipe::Offload offload = recipe::Offload::kNone;  // of all its layouts
  const model::Architecture* architecture = nullptr;
  std::int64_t sequence = 0;      // tokens of a row
  std::string schedule_csv = {};  // of the file that `fixed` names as schedule
  bool on_gpus = false;
  // Of the model, for rules that ask what can be cut; null: they cut the model itself.
  Cuts* cuts = nullptr;
  // Layers of stages that were balanced before, by the number of stages; null: none are kept.
  std::map<int, std::vector<int>>* balanced = nullptr;
  // schedule_fits is asked of those that are simulated alone: its answer takes the whole order.
  bool schedules_later = false;
};

}  // namespace ptrain::plan
