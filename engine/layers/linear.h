#pragma once

#include <span>
#include <vector>

#include "engine/layers/layer.h"

namespace ptrain::layers {

// Several linears that read the same x, such as q, k, v: weights [out_i, in], results side by side
// in the columns of one y. Weights that lie one after the other in memory are multiplied as one
// matrix.

// y [T, sum of out_i] = x [T, in] times each weight, transposed.
void linear(const Tensor& x, std::span<const Tensor> weights, const Tensor& y);

// dx [T, in] = dy [T, sum of out_i] times the weights.
void linear_input_gradient(const Tensor& dy, std::span<const Tensor> weights, const Tensor& dx);

// Queues the weights' gradients.
void queue_weight_gradient(const Tensor& x, const Tensor& dy,
                           std::span<const GradientTarget> targets,
                           std::vector<WeightProduct>& products);

}  // namespace ptrain::layers
