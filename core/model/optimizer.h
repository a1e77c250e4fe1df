#pragma once

#include "core/model/architecture.h"
#include "core/recipe/recipe.h"

namespace ptrain::model {

// Gives every parameter the rule by which this optimizer updates it, and the block that the rule
// must see whole.
void use_optimizer(Architecture& architecture, const recipe::Optimizer& optimizer);

// The model of a recipe in its precision, with its optimizer.
Result<Architecture> make_architecture(const recipe::Recipe& recipe);

}  // namespace ptrain::model
