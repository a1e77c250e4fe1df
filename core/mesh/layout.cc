#include "core/mesh/layout.h"

#include <fmt/format.h>

namespace ptrain::mesh {

Coordinates coordinates_of(const Layout& layout, int rank) {
  // Takes the innermost axis that is left off the rank.
  const auto next = [&rank](int degree) {
    const int coordinate = rank % degree;
    rank /= degree;
    return coordinate;
  };
  Coordinates c;
  c.tp = next(layout.tp);
  c.cp = next(layout.cp);
  c.shard = next(layout.shard);
  c.dp = next(layout.dp);
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

std::string to_string(const Layout& layout) {
  std::string text;
  const auto degree = [&text](const char* axis, int value) {
    if (value > 1) text += fmt::format("{}{} ", axis, value);
  };
  degree("pp", layout.pp);
  degree("dp", layout.dp);
  degree("shard", layout.shard);
  degree("cp", layout.cp);
  degree("tp", layout.tp);
  if (layout.shard > 1) text += fmt::format("zero{} ", layout.zero);
  text += fmt::format("mb{}x{}", layout.micro_batch, layout.num_micro_batches);
  if (layout.recompute == recipe::Recompute::kSelective) text += " selective";
  if (layout.recompute == recipe::Recompute::kFull) text += " recompute";
  if (layout.offload == recipe::Offload::kOptimizer) text += " offload";
  if (layout.shared_window) text += " window";
  return text;
}

}  // namespace ptrain::mesh
