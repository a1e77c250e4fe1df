#include "launcher/plan/cut_sample.h"

#include "core/mesh/part.h"
#include "launcher/plan/parts.h"

namespace ptrain::plan {

std::vector<int> CutSample::groups_of(int layer) const {
  std::vector<int> groups;
  for (int group = 0; group < part.num_groups(); ++group)
    if (part.groups[static_cast<std::size_t>(group)].layer == layer) groups.push_back(group);
  return groups;
}

Result<CutSample> cut_sample(const Sample& sample, const mesh::Layout& degrees) {
  mesh::Layout one_stage = degrees;
  one_stage.pp = one_stage.num_virtual = 1;
  one_stage.stage_layers.clear();
  one_stage.spread_head = false;
  one_stage.stage_recompute.clear();
  one_stage.layer_dtypes.clear();
  CutSample cut{{}, {}, sample.likes};
  PTRAIN_TRY(cut.part, mesh::part_of(sample.architecture, one_stage, rank_at_place(one_stage, 0)));
  cut.buffers = mesh::plan_buffers(cut.part, one_stage);
  return cut;
}

}  // namespace ptrain::plan
