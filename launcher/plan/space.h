#pragma once

#include <cstdint>
#include <string>

#include "core/model/architecture.h"
#include "core/recipe/recipe.h"

namespace ptrain::plan {

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
  // tp, pp and cp stay 1 where the recipe leaves them free.
  bool data_ranks_only = false;
};

}  // namespace ptrain::plan
