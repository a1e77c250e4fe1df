#pragma once

#include <cstdint>
#include <string>

#include "core/recipe/recipe.h"

namespace ptrain::mesh {

// One legal mix of parallelism for one training shape. Degrees multiply to the world size.
// Rank order: rank = (((pp*DP + dp)*SHARD + shard)*CP + cp)*TP + tp.
struct Layout {
  int dp = 1;
  int shard = 1;
  int cp = 1;
  int tp = 1;
  int pp = 1;
  int zero = 1;                        // 1, 2 or 3; matters where shard > 1
  std::int64_t micro_batch = 1;        // rows of one FORWARD on one rank
  std::int64_t num_micro_batches = 1;  // of one rank, one step
  recipe::Recompute recompute = recipe::Recompute::kNone;
  int prefetch = 1;  // groups gathered ahead of their use
  recipe::Offload offload = recipe::Offload::kNone;
  // All ranks are on one node and see each other's parameters and gradients in one shared window:
  // nothing is gathered, and gradients are added where they lie.
  bool shared_window = false;

  int num_ranks() const { return dp * shard * cp * tp * pp; }
  int num_data_ranks() const { return dp * shard; }
  bool operator==(const Layout&) const = default;
};

// Coordinates of a rank along each axis.
struct Coordinates {
  int pp = 0, dp = 0, shard = 0, cp = 0, tp = 0;
  int data_rank(const Layout& layout) const { return dp * layout.shard + shard; }
  bool operator==(const Coordinates&) const = default;
};

Coordinates coordinates_of(const Layout& layout, int rank);
int rank_of(const Layout& layout, const Coordinates& coordinates);

// "dp2 shard4 zero3 mb1x4": the degrees above one, then micro-batch rows x count, then what is
// computed again (selective, or recompute for all) and window.
std::string to_string(const Layout& layout);

}  // namespace ptrain::mesh
