#include "core/mesh/part.h"
#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {

std::optional<Objection> experts_divide(const mesh::Layout& layout, const Space& space) {
  if ((layout.ep == 1 && layout.etp == 1) || space.to_cut() == nullptr) return std::nullopt;
  mesh::Layout of_stage = layout;
  of_stage.pp = of_stage.num_virtual = 1;
  of_stage.stage_layers.clear();
  const auto part = mesh::part_of(*space.to_cut(), of_stage, 0);
  if (part) return std::nullopt;
  return Objection{"ep and etp do not suit the model or the ranks", detail_of(part.error()),
                   static_cast<double>(layout.ep) * layout.etp};
}

}  // namespace ptrain::plan
