#pragma once

#include "engine/kernels/matmul.h"

namespace ptrain::kernels {

// Whether this processor has units that MKL leaves idle and own products use.
bool has_own_products();

// Whether such a product is own_gemm's here. Never on Intel's processors, nor without AVX-512 and
// its units for bfloat16: MKL leaves the latter idle on all others, and is slower there in float32
// too, but for small products. MKL_ENABLE_INSTRUCTIONS, which forbids MKL some units, forbids them
// here.
bool uses_own_gemm(const Tensor& a, const Tensor& c, MatmulOptions options);

// matmul into a c in float32 of operands in float32 or bfloat16, on a processor with those units,
// where denormals of bfloat16 count as zero. Rows of c are shared out over OMP_NUM_THREADS threads;
// the sums are the same with any number of them.
void own_gemm(const Tensor& a, const Tensor& b, const Tensor& c, MatmulOptions options);

}  // namespace ptrain::kernels
