#pragma once

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// kGelu is exact, by the error function, and slow; kGeluTanh its usual stand-in.
enum class Activation { kSilu, kGelu, kGeluTanh };

// Inputs and products may be bfloat16; the gradient of a product is then float32.

// product [T, F] = activation(gate) * up, where gate_up [T, 2 F] holds gate in its first F columns.
void gated(Activation activation, const Tensor& gate_up, const Tensor& product);
// gate_up becomes its gradient, from dproduct [T, F].
void gated_backward(Activation activation, const Tensor& gate_up, const Tensor& dproduct);

// product = activation(x), both [T, F].
void activate(Activation activation, const Tensor& x, const Tensor& product);
// x becomes its gradient, from dproduct.
void activate_backward(Activation activation, const Tensor& x, const Tensor& dproduct);

}  // namespace ptrain::kernels
