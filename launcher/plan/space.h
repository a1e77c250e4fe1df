#pragma once

#include <cstdint>

#include "core/recipe/recipe.h"

namespace ptrain::plan {

// What one shape may be laid out over.
struct Space {
  int num_ranks = 1;
  std::int64_t rows = 0;       // of a step, all ranks
  recipe::Parallel fixed;      // what the recipe asks for; zero or empty: free
  bool shared_window = false;  // all ranks are on one node
  recipe::Offload offload = recipe::Offload::kNone;  // of all its layouts
};

}  // namespace ptrain::plan
