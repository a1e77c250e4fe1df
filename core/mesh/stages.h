#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/schedule/schedule.h"

namespace ptrain::mesh {

// Where the layers of a model lie in a pipeline. Stages count in model order.

// Stage s works on layers [begin, end).
struct StageLayers {
  int begin = 0;
  int end = 0;
  bool operator==(const StageLayers&) const = default;
};

// By stage; where the layout gives no counts, as even as can be. Errors (kUsage): counts that are
// not one a stage, at least 1 each, num_layers in all.
Result<std::vector<StageLayers>> layers_of_stages(const Layout& layout, int num_layers);

// What the blocks of each stage compute again, by layer.
std::vector<recipe::Recompute> recompute_of_layers(const Layout& layout, int num_layers);

// The user's own order (Layout::schedule_csv). Errors (kUsage): it cannot be read or run by any
// ranks, or is for other numbers of ranks or stages than the layout's; two copies of the weights or
// micro-batches in slices, which the engine does not run.
Result<schedule::Schedule> schedule_of_file(const Layout& layout);

// By stage: the pipeline rank that works on it, as the layout's schedule places stages. Errors
// (kUsage): no such schedule, one with two copies of the weights, or a file for other numbers of
// ranks or stages than the layout's.
Result<std::vector<int>> ranks_of_stages(const Layout& layout);

}  // namespace ptrain::mesh
