#pragma once

#include "engine/kernels/matmul.h"

namespace ptrain::kernels {

// Whether products of bfloat16 are bf16_gemm's here: the processor has units for them (AVX512-BF16)
// that MKL leaves idle, as it does on all but Intel's. MKL_ENABLE_INSTRUCTIONS, which forbids MKL
// some units, forbids these too.
bool uses_bf16_gemm();

// matmul of a and b in bfloat16 and c in float32, on a processor with AVX512-BF16. Denormals count
// as zero, as those units have it. Rows of c are shared out over OMP_NUM_THREADS threads; the sums
// are the same with any number of them.
void bf16_gemm(const Tensor& a, const Tensor& b, const Tensor& c, MatmulOptions options);

}  // namespace ptrain::kernels
