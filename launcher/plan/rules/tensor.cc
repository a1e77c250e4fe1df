#include <fmt/format.h>

#include "core/base/error_line.h"
#include "core/mesh/divisible.h"
#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {

// Heads, widths, vocabulary, and optimizers that work on whole matrices.
std::optional<Objection> tensor_divides(const mesh::Layout& layout, const Space& space) {
  if (layout.tp == 1) return std::nullopt;
  mesh::Layout alone;
  alone.tp = layout.tp;
  const Status can = can_be_cut(alone, space);
  if (can) return std::nullopt;
  const bool divides = mesh::check_divisible(*space.architecture, alone).has_value();
  return Objection{divides ? "tp does not suit the optimizer" : "tp does not divide the model",
                   error_line(can.error()), static_cast<double>(layout.tp)};
}

std::optional<Objection> tokens_divide(const mesh::Layout& layout, const Space& space) {
  const std::int64_t tokens = layout.micro_batch * space.sequence / layout.cp;
  if (tokens % layout.tp == 0) return std::nullopt;
  mesh::Layout nearest = layout;
  while (tokens % nearest.tp != 0 || tensor_divides(nearest, space)) --nearest.tp;
  return Objection{"tp does not divide the tokens of a micro-batch",
                   fmt::format("{} tokens over tp {}; the nearest that divides is tp {}", tokens,
                               layout.tp, nearest.tp),
                   static_cast<double>(tokens % layout.tp)};
}

}  // namespace ptrain::plan
