#pragma once

#include "core/base/dtype.h"
#include "core/base/result.h"
#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// The numbers of weights and activations. Refuses (kUsage) what this version cannot train with.
Result<DType> dtype_of(Precision precision);

}  // namespace ptrain::recipe
