#include "core/recipe/pipeline_fields.h"

#include <utility>

namespace ptrain::recipe {

std::vector<PipelineField> pipeline_fields_in(const Parallel& parallel) {
  const std::pair<bool, PipelineField> all[] = {
      {parallel.embedding == Embedding::kAllStages, {"embedding", "embedding: all_stages"}},
      {parallel.head == Head::kAllStages, {"head", "head: all_stages"}},
      {parallel.num_virtual > 1, {"virtual", "virtual"}},
      {!parallel.schedule.empty(), {"schedule", "schedule"}},
      {!parallel.stages.empty(), {"stages", "stages"}},
      {!parallel.stage_recompute.empty(), {"stage_recompute", "stage_recompute"}},
      {!parallel.stage_dtype.empty(), {"stage_dtype", "stage_dtype"}}};
  std::vector<PipelineField> given;
  for (const auto& [is_given, field] : all)
    if (is_given) given.push_back(field);
  return given;
}

}  // namespace ptrain::recipe
