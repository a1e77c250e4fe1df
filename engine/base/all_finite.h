#pragma once

#include "engine/base/tensor.h"

namespace ptrain {

// Whether row [1, n], of fp32 or fp64, holds no NaN and no infinity. Host code: kernels that write
// the row have ended.
bool all_finite(const Tensor& row);

}  // namespace ptrain
