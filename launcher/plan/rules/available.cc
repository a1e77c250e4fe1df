#include <fmt/format.h>

#include <utility>

#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {

std::optional<Objection> is_available(const mesh::Layout& layout, const Space& space) {
  if (!space.on_gpus) return std::nullopt;
  for (const auto& [axis, degree] :
       {std::pair{"pp", layout.pp}, std::pair{"tp", layout.tp}, std::pair{"cp", layout.cp}})
    if (degree > 1)
      return Objection{fmt::format("{} above 1 does not run on GPUs in this version", axis),
                       fmt::format("{} is {}; take {} 1, or plan for a cluster without GPUs", axis,
                                   degree, axis),
                       static_cast<double>(degree)};
  return std::nullopt;
}

}  // namespace ptrain::plan
