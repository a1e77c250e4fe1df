#pragma once

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"

namespace ptrain::mesh {

// Where `rank` is among those that share the embedding's matrix, or the head's. Errors (kUsage):
// those of ranks_of_stages.
Result<model::VocabularyPlace> embedding_place_of(const Layout& layout, int rank);
Result<model::VocabularyPlace> head_place_of(const Layout& layout, int rank);

// Errors (kUsage): a spread embedding or head (Layout::spread_embedding, spread_head) without a
// pipeline, one of the two alone where they are one matrix, or a matrix with fewer rows than ranks
// share it.
Status check_spread(const model::Architecture& whole, const Layout& layout);

}  // namespace ptrain::mesh
