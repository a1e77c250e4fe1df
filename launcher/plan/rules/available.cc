#include <fmt/format.h>

#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {

std::optional<Objection> is_available(const mesh::Layout& layout, const Space& space) {
  if (layout.pp > 1 && space.on_gpus)
    return Objection{
        "pp above 1 does not run on GPUs in this version",
        fmt::format("pp is {}; take pp 1, or plan for a cluster without GPUs", layout.pp),
        static_cast<double>(layout.pp)};
  if (layout.cp > 1 && space.on_gpus)
    return Objection{
        "cp above 1 does not run on GPUs in this version",
        fmt::format("cp is {}; take cp 1, or plan for a cluster without GPUs", layout.cp),
        static_cast<double>(layout.cp)};
  return std::nullopt;
}

}  // namespace ptrain::plan
