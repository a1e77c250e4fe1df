#include <fmt/format.h>

#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {

std::optional<Objection> is_available(const mesh::Layout& layout, const Space&) {
  const int degree = layout.cp * layout.tp * layout.pp;
  if (degree == 1) return std::nullopt;
  return Objection{"cp, tp and pp above 1 are not available in this version",
                   fmt::format("needs {} ranks a replica that work on the same rows", degree),
                   static_cast<double>(degree)};
}

}  // namespace ptrain::plan
