#pragma once

#include <span>

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

// Operands of one matmul of many.
struct Product {
  Tensor a, b, c;
  bool accumulate = false;
};

// matmul of each, with the transposes of `options`; no c overlaps another. Where each has a
// thread's share of the work at most, threads take whole products, since one of few rows keeps a
// thread busy but not all of them; else all threads share each.
void grouped_matmul(std::span<const Product> products, MatmulOptions options = {});

}  // namespace ptrain::kernels
