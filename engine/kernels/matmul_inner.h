#pragma once

#include "engine/base/engine_error.h"
#include "engine/kernels/matmul.h"

namespace ptrain::kernels {

// k of a product.
inline std::int64_t inner_of(const Tensor& a, MatmulOptions options) {
  return options.transpose_a ? a.rows : a.cols;
}

// What every twin of matmul asks of its operands: shapes and dtypes that fit. Returns k.
inline std::int64_t checked_inner(const Tensor& a, const Tensor& b, const Tensor& c,
                                  MatmulOptions options) {
  const std::int64_t inner = inner_of(a, options);
  PT_CHECK((options.transpose_a ? a.cols : a.rows) == c.rows);
  PT_CHECK((options.transpose_b ? b.rows : b.cols) == c.cols);
  PT_CHECK((options.transpose_b ? b.cols : b.rows) == inner);
  PT_CHECK(a.dtype == b.dtype);
  PT_CHECK(c.dtype == wide_of(a.dtype));
  return inner;
}

}  // namespace ptrain::kernels
