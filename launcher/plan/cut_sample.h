#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/mesh/buffer_plan.h"
#include "launcher/plan/sample.h"

namespace ptrain::plan {

// A sample as a rank of a mix of degrees holds it, were there one stage: what each of its layers
// costs and holds, layers of the whole model do wherever the pipeline puts them.
struct CutSample {
  model::Architecture part;
  std::vector<mesh::BufferPlan> buffers;
  std::vector<int> likes;  // Sample::likes

  // Those of a layer of the part, its experts' behind its own.
  std::vector<int> groups_of(int layer) const;
};

// Errors (kUsage): those of mesh::part_of.
Result<CutSample> cut_sample(const Sample& sample, const mesh::Layout& degrees);

}  // namespace ptrain::plan
