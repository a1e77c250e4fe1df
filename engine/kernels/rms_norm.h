#pragma once

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// The weight that multiplies is `offset` + weight: 1 in Gemma, whose weights begin at 0.
struct RmsNormWeight {
  Tensor weight;  // [1, H]
  double offset = 0;
};

// y = x * scale * weight, scale = 1 / sqrt(mean(x^2) + eps), one a row. x, y: [T, H]; scale: [T,
// 1], written. y and weight may be bfloat16 where the rest is float32.
void rms_norm(const Tensor& x, const RmsNormWeight& weight, double eps, const Tensor& y,
              const Tensor& scale);

struct RmsNormGradient {
  Tensor x;      // [T, H], as in forward
  Tensor scale;  // [T, 1], as forward wrote it
  RmsNormWeight weight;
  Tensor dy;        // [T, H]
  Tensor residual;  // [T, H], added to dx; empty: nothing is added
};

// dx = residual + gradient through the norm; dweight [1, H] is added to. dx may be dy or residual.
void rms_norm_backward(const RmsNormGradient& in, const Tensor& dx, const Tensor& dweight);

}  // namespace ptrain::kernels
