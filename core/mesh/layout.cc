#include "core/mesh/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ptrain::mesh {

namespace {

// Takes the innermost axis that is left off the rank.
int take_off(int& rank, int degree) {
  const int coordinate = rank % degree;
  rank /= degree;
  return coordinate;
}

// Ranks that hold the same experts, or shards of them.
int num_expert_holders(const Layout& layout) {
  return layout.num_stage_ranks() / (layout.ep * layout.etp);
}

// "float32*2,bfloat16": of layers one after the other.
std::string runs_of(const std::vector<DType>& dtypes) {
  std::string text;
  for (auto at = dtypes.begin(); at != dtypes.end();) {
    const auto end = std::find_if(at, dtypes.end(), [at](DType dtype) { return dtype != *at; });
    if (!text.empty()) text += ",";
    text += name_of(*at);
    if (end - at > 1) text += fmt::format("*{}", end - at);
    at = end;
  }
  return text;
}

}  // namespace

Coordinates coordinates_of(const Layout& layout, int rank) {
  Coordinates c;
  c.tp = take_off(rank, layout.tp);
  c.cp = take_off(rank, layout.cp);
  c.shard = take_off(rank, layout.shard);
  c.dp = take_off(rank, layout.dp);
  c.pp = rank;
  return c;
}

int rank_of(const Layout& layout, const Coordinates& c) {
  int rank = c.pp;
  rank = rank * layout.dp + c.dp;
  rank = rank * layout.shard + c.shard;
  rank = rank * layout.cp + c.cp;
  return rank * layout.tp + c.tp;
}

int num_expert_shards(const Layout& layout) {
  return std::gcd(num_expert_holders(layout), layout.num_shards());
}

int num_expert_replicas(const Layout& layout) {
  return num_expert_holders(layout) / num_expert_shards(layout);
}

bool experts_have_axes(const Layout& layout) { return layout.tp * layout.ep * layout.etp > 1; }

ExpertCoordinates expert_coordinates_of(const Layout& layout, int rank) {
  const int shards = num_expert_shards(layout);
  ExpertCoordinates c;
  c.etp = take_off(rank, layout.etp);
  c.ep = take_off(rank, layout.ep);
  c.eshard = take_off(rank, shards);
  c.edp = take_off(rank, num_expert_replicas(layout));
  c.pp = rank;
  return c;
}

std::string to_string(const Layout& layout) {
  std::string text;
  const auto degree = [&text](const char* axis, int value) {
    if (value > 1) text += fmt::format("{}{} ", axis, value);
  };
  degree("pp", layout.pp);
  degree("dp", layout.dp);
  degree("shard", layout.shard);
  degree("cp", layout.cp);
  degree("ulysses", layout.ulysses);
  degree("tp", layout.tp);
  degree("ep", layout.ep);
  degree("etp", layout.etp);
  degree("virtual", layout.num_virtual);
  if (layout.pp > 1 && !layout.schedule.empty()) text += layout.schedule + " ";
  if (layout.pp > 1 && !layout.schedule_csv.empty()) text += "csv ";
  if (layout.spread_embedding) text += "spread_embedding ";
  if (layout.spread_head) text += "spread_head ";
  if (layout.num_shards() > 1) text += fmt::format("zero{} ", layout.zero);
  text += fmt::format("mb{}x{}", layout.micro_batch, layout.num_micro_batches);
  if (layout.recompute == recipe::Recompute::kSelective) text += " selective";
  if (layout.recompute == recipe::Recompute::kFull) text += " recompute";
  for (const recipe::Recompute recompute : layout.stage_recompute)
    text += fmt::format("{}{}", &recompute == layout.stage_recompute.data() ? " stages:" : ",",
                        recipe::to_string(recompute));
  if (!layout.layer_dtypes.empty()) text += " layers:" + runs_of(layout.layer_dtypes);
  if (layout.offload == recipe::Offload::kOptimizer) text += " offload";
  if (layout.shared_window) text += " window";
  return text;
}

}  // namespace ptrain::mesh
