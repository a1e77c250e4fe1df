#pragma once

#include "engine/base/tensor.h"
#include "engine/optim/muon.h"

namespace ptrain::optim {

// The passes of Muon over elements, one twin for each place where kernels run. All tensors are
// matrices of one dtype, fp32 or fp64, whose rows lie side by side.

struct MuonGradient {
  Tensor gradient;         // [rows, cols]
  Tensor momentum_buffer;  // [rows, cols]: the mean of gradients up to now
};

// Moves the mean of gradients by `scale` times the gradient, and writes what is to be
// orthogonalised into `to`: [rows, cols], or transposed.
void take_gradient(const MuonOptions& options, double scale, const MuonGradient& in,
                   const Tensor& to);

// parameter = keep * parameter - rate * direction, which may be transposed.
void apply_direction(const Tensor& parameter, const Tensor& direction, double keep, double rate);

}  // namespace ptrain::optim
