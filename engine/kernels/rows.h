#pragma once

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// What is added may be bfloat16 where it is added to float32.

// Every row of y [T, n] += row [1, n].
void add_row(const Tensor& row, const Tensor& y);
// sum [1, n] += all rows of y [T, n], in an order that depends on T only; up to 64 in their own.
void sum_rows(const Tensor& y, const Tensor& sum);

// y += x, both [T, n].
void add(const Tensor& x, const Tensor& y);
// y *= factor.
void scale(double factor, const Tensor& y);
// y = y_factor * y + x_factor * x, both [T, n].
void combine(double y_factor, const Tensor& y, double x_factor, const Tensor& x);

// All bytes of y, of any dtype, become 0.
void set_zero(const Tensor& y);
// The squares of row [1, n], added up in double.
double square_sum(const Tensor& row);

// y becomes cap * tanh(y / cap).
void softcap(double cap, const Tensor& y);
// dy *= the derivative of softcap, where `capped` is what softcap gave.
void softcap_backward(double cap, const Tensor& capped, const Tensor& dy);

}  // namespace ptrain::kernels
