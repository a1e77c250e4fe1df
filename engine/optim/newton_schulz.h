#pragma once

#include "engine/base/tensor.h"

namespace ptrain::optim {

// Turns `matrix` [m, n], contiguous with m <= n, into nearly the closest one with orthonormal rows:
// divided by its Frobenius norm, then five steps X = a X + (b X X' + c (X X')^2) X, whose
// coefficients drive singular values to about 0.7 .. 1.2 quickly rather than exactly to 1.
// `scratch` holds m n + 2 m m elements. Returns where the result is, `matrix` or in `scratch`.
Tensor orthogonalise(const Tensor& matrix, const Tensor& scratch);

}  // namespace ptrain::optim
