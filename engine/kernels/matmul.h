#pragma once

#include "engine/base/tensor.h"

namespace ptrain::kernels {

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  // c += instead of c =
};

// c [m, n] = a [m, k] b [k, n]; a transposed operand is stored the other way round. All of one
// dtype, or a and b bfloat16 and c float32, summed in float32. Rows may be strided; c overlaps
// neither a nor b. Runs on as many threads as the matrix library was given.
void matmul(const Tensor& a, const Tensor& b, const Tensor& c, MatmulOptions options = {});

}  // namespace ptrain::kernels
