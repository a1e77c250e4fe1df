#pragma once

#include "core/base/dtype.h"
#include "core/recipe/recipe.h"

namespace ptrain::recipe {

// The numbers that matrices are multiplied in; what is added up is wide_of() it.
DType compute_dtype_of(Precision precision);

}  // namespace ptrain::recipe
