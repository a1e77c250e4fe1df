#include "launcher/plan/pipelines.h"

#include <algorithm>

#include "core/mesh/stages.h"

namespace ptrain::plan {

using mesh::Layout;

std::vector<StageKinds> Pipelines::stages_of(const Layout& layout) const {
  auto layers = mesh::layers_of_stages(layout, static_cast<int>(likes_.size()));
  const auto ranks = mesh::ranks_of_stages(layout);
  if (!layers || !ranks) return {};
  if (layout.spread_embedding) layers->front().begin += 1;
  if (layout.spread_head) layers->back().end -= 1;
  const auto num_kinds = static_cast<std::size_t>(std::ranges::max(likes_)) + 1;
  std::vector<StageKinds> stages;
  for (std::size_t s = 0; s < layers->size(); ++s) {
    StageKinds& stage =
        stages.emplace_back((*ranks)[s], std::vector<int>(num_kinds), std::vector<int>(num_kinds));
    int run = 0;
    for (int layer = (*layers)[s].begin; layer < (*layers)[s].end; ++layer) {
      const int like = likes_[static_cast<std::size_t>(layer)];
      const bool goes_on =
          layer > (*layers)[s].begin && likes_[static_cast<std::size_t>(layer) - 1] == like;
      run = goes_on ? run + 1 : 1;
      stage.num_like[static_cast<std::size_t>(like)] += 1;
      int& longest = stage.longest_run[static_cast<std::size_t>(like)];
      longest = std::max(longest, run);
    }
  }
  return stages;
}

const std::vector<StageKinds>& Pipelines::of(const Layout& layout) {
  const std::string& schedule = layout.schedule.empty() ? layout.schedule_csv : layout.schedule;
  Key key{layout.pp,          layout.num_virtual, layout.spread_embedding,
          layout.spread_head, schedule,           layout.stage_layers};
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_.emplace(std::move(key), stages_of(layout)).first->second;
}

}  // namespace ptrain::plan
