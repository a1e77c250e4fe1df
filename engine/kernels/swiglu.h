#pragma once

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// product [T, F] = silu(gate) * up, where gate_up [T, 2 F] holds gate in its first F columns.
void swiglu(const Tensor& gate_up, const Tensor& product);

// gate_up becomes its gradient, from dproduct [T, F].
void swiglu_backward(const Tensor& gate_up, const Tensor& dproduct);

}  // namespace ptrain::kernels
