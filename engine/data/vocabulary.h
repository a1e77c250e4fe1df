#pragma once

#include "core/recipe/recipe.h"
#include "engine/data/index.h"

namespace ptrain::data {

// EngineError (kUnusable) where an index holds a token beyond the model's vocabulary: names the
// first such document. validation may be null.
void check_vocabulary(const Index& train, const Index* validation, const recipe::Recipe& recipe);

}  // namespace ptrain::data
