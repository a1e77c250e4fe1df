#include "core/base/error_line.h"
#include "core/mesh/divisible.h"
#include "launcher/plan/rules/rules.h"

namespace ptrain::plan {

std::optional<Objection> experts_divide(const mesh::Layout& layout, const Space& space) {
  if (layout.ep == 1 && layout.etp == 1) return std::nullopt;
  mesh::Layout of_stage = layout;
  of_stage.pp = of_stage.num_virtual = 1;
  of_stage.stage_layers.clear();
  of_stage.spread_embedding = of_stage.spread_head = false;
  const Status can = can_be_cut(of_stage, space);
  if (can) return std::nullopt;
  const bool divides = mesh::check_divisible(*space.architecture, of_stage).has_value();
  return Objection{
      divides ? "etp does not suit the optimizer" : "ep and etp do not suit the model or the ranks",
      error_line(can.error()), static_cast<double>(layout.ep) * layout.etp};
}

}  // namespace ptrain::plan
