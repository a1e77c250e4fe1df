#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/mesh/layout.h"
#include "core/recipe/recipe.h"

namespace ptrain::plan {

// What one shape may be laid out over.
struct Space {
  int num_ranks = 1;
  std::int64_t rows = 0;   // of a step, all ranks
  recipe::Parallel fixed;  // what the recipe asks for; zero or empty: free
};

// A layout that is out, and why. `detail` says it in this layout's numbers; `excess` orders the
// layouts of one reason: the smallest came closest.
struct Rejected {
  mesh::Layout layout;
  std::string reason;
  std::string detail;
  double excess = 0;
};

struct Enumeration {
  std::vector<mesh::Layout> legal;
  std::vector<Rejected> rejected;
};

// Every layout of the space, each either legal or rejected, in a fixed order. Mixes over axes that
// this version cannot run (cp, tp, pp) and mixes whose ranks cannot share the rows are listed once,
// without their micro-batches and options.
Enumeration enumerate(const Space& space);

std::vector<std::int64_t> divisors(std::int64_t number);  // ascending

}  // namespace ptrain::plan
