#pragma once

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"

namespace ptrain::mesh {

// Where `rank` is among those that share the head. Errors (kUsage): those of ranks_of_stages.
Result<model::HeadPlace> head_place_of(const Layout& layout, int rank);

// Errors (kUsage): a spread head (Layout::spread_head) without a pipeline, one whose matrix is the
// embedding's too, or one with fewer rows than ranks share it.
Status check_spread_head(const model::Architecture& whole, const Layout& layout);

}  // namespace ptrain::mesh
