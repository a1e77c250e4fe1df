#pragma once

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// to = from, in the dtype of `to`; one shape, rows may be strided. From float32 to bfloat16 rounds
// to nearest, ties to even. Dtypes: equal ones, or float32 and bfloat16 either way.
void convert(const Tensor& from, const Tensor& to);

}  // namespace ptrain::kernels
