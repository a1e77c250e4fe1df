#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/recipe/recipe.h"

namespace ptrain::mesh {

// One legal mix of parallelism for one training shape. dp, shard, cp, tp and pp multiply to the
// world size. Rank order: rank = (((pp*DP + dp)*SHARD + shard)*CP + cp)*TP + tp.
// Parameters of experts see the block (dp, shard, cp, tp) as (edp, eshard, ep, etp), etp fastest.
struct Layout {
  int dp = 1;
  int shard = 1;
  int cp = 1;  // ranks that share a row: a ring of groups of `ulysses`, which are neighbours
  int ulysses = 1;
  int tp = 1;
  int pp = 1;
  int num_virtual = 1;                 // stages of a pipeline rank
  std::string schedule = {};           // by name (core/schedule/catalogue.h); empty where pp is 1
  std::string schedule_csv = {};       // the user's own order, in place of a name
  std::vector<int> stage_layers = {};  // layers of each stage; embedding and head are layers too
  bool spread_embedding = false;       // all pipeline ranks share the embedding's matrix
  bool spread_head = false;            // the same for the head's matrix and loss
  int ep = 1;                          // ranks that share the experts of a layer
  int etp = 1;                         // ranks that share one expert
  int zero = 1;                        // 1, 2 or 3; matters where shard > 1
  std::int64_t micro_batch = 1;        // rows of one FORWARD on one rank
  std::int64_t num_micro_batches = 1;  // of one rank, one step
  recipe::Recompute recompute = recipe::Recompute::kNone;
  std::vector<recipe::Recompute> stage_recompute = {};  // by stage; empty: all as `recompute`
  // Of products, by layer; empty: of all layers what the recipe's precision says.
  std::vector<DType> layer_dtypes = {};
  int prefetch = 1;  // groups gathered ahead of their use
  recipe::Offload offload = recipe::Offload::kNone;
  // All ranks are on one node and see each other's parameters and gradients in one shared window:
  // nothing is gathered, and gradients are added where they lie.
  bool shared_window = false;

  int num_ranks() const { return num_stage_ranks() * pp; }
  int num_stage_ranks() const { return dp * shard * cp * tp; }  // of one pipeline rank
  int num_data_ranks() const { return dp * shard; }
  int num_stages() const { return pp * num_virtual; }
  // Ranks over which dense parameters are sharded, and of those the own one: cp fastest.
  int num_shards() const { return shard * cp; }
  // ZeRO 2 and 3: only the shard's gradients outlive a micro-batch.
  bool shards_gradients() const { return num_shards() > 1 && zero >= 2; }
  // ZeRO 3 by messages: parameters are gathered again for each use.
  bool gathers_each_use() const { return num_shards() > 1 && zero == 3 && !shared_window; }
  recipe::Recompute recompute_of(int stage) const {
    return stage_recompute.empty() ? recompute : stage_recompute[static_cast<std::size_t>(stage)];
  }
  bool operator==(const Layout&) const = default;
};

// Coordinates of a rank along each axis.
struct Coordinates {
  int pp = 0, dp = 0, shard = 0, cp = 0, tp = 0;
  int data_rank(const Layout& layout) const { return dp * layout.shard + shard; }
  int shard_rank(const Layout& layout) const { return shard * layout.cp + cp; }
  bool operator==(const Coordinates&) const = default;
};

Coordinates coordinates_of(const Layout& layout, int rank);
int rank_of(const Layout& layout, const Coordinates& coordinates);

// The same rank, as the parameters of experts see it.
struct ExpertCoordinates {
  int pp = 0, edp = 0, eshard = 0, ep = 0, etp = 0;
  bool operator==(const ExpertCoordinates&) const = default;
};
// Ranks over which the experts of one ep rank are sharded: the largest number that divides both
// their replicas and num_shards().
int num_expert_shards(const Layout& layout);
int num_expert_replicas(const Layout& layout);  // of each of these shards: edp
// Whether experts see other axes than dense parameters do.
bool experts_have_axes(const Layout& layout);
ExpertCoordinates expert_coordinates_of(const Layout& layout, int rank);

// "dp2 shard4 zero3 mb1x4": the degrees above one, then micro-batch rows x count, then what is
// computed again (selective, or recompute for all) and window.
std::string to_string(const Layout& layout);

}  // namespace ptrain::mesh
