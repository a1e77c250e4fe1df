#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/recipe/recipe.h"
#include "engine/data/index.h"
#include "engine/train/shape_run.h"

namespace ptrain::train {

struct ValidationResult {
  double loss = 0;  // nats a token
  std::int64_t num_targets = 0;
};

// Mean loss over the first `tokens` positions of packed validation rows, the same rows at every
// call. Collective over the world.
ValidationResult validate(ShapeRun& shape, const std::shared_ptr<const data::Index>& index,
                          const recipe::Recipe& recipe);

// `num_tokens` tokens after a document's start, drawn at temperature 1 by a generator of (seed,
// step), as text; ends early at an end of document. Collective over the world; every rank returns
// the same text.
std::string sample(ShapeRun& shape, std::int64_t num_tokens, std::uint64_t seed);

}  // namespace ptrain::train
