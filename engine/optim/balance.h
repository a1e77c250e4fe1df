#pragma once

#include "engine/base/tensor.h"

namespace ptrain::optim {

// One step of a router's bias, [1, n]: minus rate where the gradient, which says how far the load
// is above the mean, is positive; plus rate where it is negative.
void balance(double rate, const Tensor& bias, const Tensor& gradient);

}  // namespace ptrain::optim
