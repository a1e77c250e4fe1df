#include <fmt/format.h>

#include "core/base/error_line.h"
#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {
namespace {

// The degree that divides the sequence and is nearest; of two alike the smaller one.
std::int64_t nearest_divisor(std::int64_t sequence, std::int64_t degree) {
  for (std::int64_t distance = 1; distance < degree; ++distance) {
    if (sequence % (degree - distance) == 0) return degree - distance;
    if (sequence % (degree + distance) == 0) return degree + distance;
  }
  return 1;
}

}  // namespace

std::optional<Objection> context_divides(const mesh::Layout& layout, const Space& space) {
  if (layout.cp == 1) return std::nullopt;
  if (space.sequence % layout.cp != 0)
    return Objection{
        "cp does not divide a row",
        fmt::format("{} tokens over ring x ulysses {}; the nearest that divides is {}",
                    space.sequence, layout.cp, nearest_divisor(space.sequence, layout.cp)),
        static_cast<double>(space.sequence % layout.cp)};
  mesh::Layout alone;
  alone.tp = layout.tp;
  alone.cp = layout.cp;
  alone.ulysses = layout.ulysses;
  const Status can = can_be_cut(alone, space);
  if (can) return std::nullopt;
  return Objection{"cp does not suit the model", error_line(can.error()),
                   static_cast<double>(layout.cp)};
}

}  // namespace ptrain::plan
