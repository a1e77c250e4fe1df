#pragma once

#include "engine/base/tensor.h"
#include "engine/optim/muon.h"

namespace ptrain::optim {

struct MuonGradient {
  Tensor gradient, momentum_buffer;
};

// Moves the mean of gradients by `scale` times the gradient, and writes what is to be
// orthogonalised into `to`: of the same shape, or transposed.
void take_gradient(const MuonOptions& options, double scale, const MuonGradient& in,
                   const Tensor& to);

// parameter = keep * parameter - rate * direction, which may be transposed.
void move(const Tensor& parameter, const Tensor& direction, double keep, double rate);

}  // namespace ptrain::optim
