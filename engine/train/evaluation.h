#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/recipe/recipe.h"
#include "engine/data/index.h"
#include "engine/data/tokenizer.h"
#include "engine/train/shape_run.h"

namespace ptrain::train {

struct ValidationResult {
  double loss = 0;  // nats a token
  std::int64_t num_targets = 0;
};

// Mean loss over the first packed validation rows that hold validation.tokens positions: the same
// rows at every call and for any layout. Collective over the world.
ValidationResult validate(ShapeRun& shape, const std::shared_ptr<const data::Index>& index,
                          const recipe::Recipe& recipe);

// `num_tokens` tokens drawn at temperature 1, as text; ends early at an end of document. Begins
// after a line's end, which is not shown: the end of a document is only ever a target in training,
// so a model knows nothing of what follows it. Collective over the world; the same text on every
// rank, and from the same weights on any number of ranks.
std::string sample(ShapeRun& shape, const data::Tokenizer& tokenizer, std::int64_t num_tokens,
                   std::uint64_t seed);

}  // namespace ptrain::train
