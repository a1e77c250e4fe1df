#pragma once

#include "engine/base/tensor.h"

namespace ptrain::kernels {

struct LayerNormWeights {
  Tensor weight, bias;  // [1, H]
};

// y = (x - mean) * scale * weight + bias, scale = 1 / sqrt(variance + eps), of every row. x, y: [T,
// H]; statistics: [T, 2], written: mean, scale. y, weight and bias may be bfloat16 where the rest
// is float32.
void layer_norm(const Tensor& x, const LayerNormWeights& weights, double eps, const Tensor& y,
                const Tensor& statistics);

struct LayerNormGradient {
  Tensor x;           // [T, H], as in forward
  Tensor statistics;  // [T, 2], as forward wrote them
  Tensor weight;      // [1, H]
  Tensor dy;          // [T, H]
  Tensor residual;    // [T, H], added to dx; empty: nothing is added
};

// dx = residual + gradient through the norm; dweights are added to. dx may be dy or residual.
void layer_norm_backward(const LayerNormGradient& in, const Tensor& dx,
                         const LayerNormWeights& dweights);

}  // namespace ptrain::kernels
