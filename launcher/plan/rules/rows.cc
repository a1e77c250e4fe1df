#include <fmt/format.h>

#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {

std::optional<Objection> rows_divide(const mesh::Layout& layout, const Space& space) {
  const int ranks = layout.num_data_ranks();
  const auto detail = fmt::format("{} rows over {} ranks", space.rows, ranks);
  if (space.rows < ranks)
    return Objection{"more ranks than rows", detail, static_cast<double>(ranks - space.rows),
                     Shortage::kRows};
  if (space.rows % ranks != 0)
    return Objection{"the rows of a step do not divide over the ranks", detail,
                     static_cast<double>(space.rows % ranks), Shortage::kRows};
  return std::nullopt;
}

}  // namespace ptrain::plan
