#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"
#include "launcher/plan/space.h"

namespace ptrain::plan {

// What all stages share of a model's ends.
struct SpreadEnds {
  bool embedding = false;
  bool head = false;
};

// Layers of each of `num_stages` stages, in model order, so that the stage that computes longest
// computes as short as can be, and the others as evenly: by the floating-point operations of a
// token in rows of `sequence`, embedding and head counted; not a head that all stages share. The
// first stage has a layer beside a shared embedding. Errors (kUsage): more stages than layers.
Result<std::vector<int>> balanced_stages(const model::Architecture& architecture,
                                         std::int64_t sequence, int num_stages,
                                         SpreadEnds spread = {});

// What a recipe says ("9,8,9"; recipe/stage_lists.h). Errors (kUsage): no such list, not one entry
// a stage, not all layers of the model; with what would do.
Result<std::vector<int>> stages_from(const std::string& text, int num_layers, int num_stages);

// The same of recomputation by stage ("none,full").
Result<std::vector<recipe::Recompute>> stage_recompute_from(const std::string& text,
                                                            int num_stages);

// And of the dtype that stages multiply in ("fp32,bf16").
Result<std::vector<DType>> stage_dtypes_from(const std::string& text, int num_stages);

// By layer; none where the recipe says nothing of stages, or what does not suit the layout.
std::vector<DType> layer_dtypes_of(const mesh::Layout& layout, const Space& space);

// Those of a layout of the space: as the recipe fixes them, else balanced.
Result<std::vector<int>> stage_layers_of(const mesh::Layout& layout, const Space& space);

// Stages a rank of a schedule's file on `pp` ranks; 1 where it cannot be read.
int virtual_stages_of(const std::string& schedule_csv, int pp);

}  // namespace ptrain::plan
