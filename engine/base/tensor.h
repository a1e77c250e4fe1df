#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "engine/base/bfloat16.h"

namespace ptrain {

// A view of a matrix in memory that somebody else owns: `rows` rows of `cols` elements, the start
// of each `stride` elements after the last. A vector is one row. Copying a view copies no data.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  std::int64_t num_elements() const { return rows * cols; }
  bool empty() const { return data == nullptr; }
  // Columns [begin, begin + count) of every row.
  Tensor columns(std::int64_t begin, std::int64_t count) const;
  // Rows [begin, begin + count).
  Tensor row_range(std::int64_t begin, std::int64_t count) const;
};

// A view of `rows` x `cols` contiguous elements.
Tensor contiguous(void* data, DType dtype, std::int64_t rows, std::int64_t cols);

// dispatch(dtype, f): f(float{}) or f(double{}).
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  if (dtype == DType::kFloat64) return f(double{});
  return f(float{});
}

// dispatch_compute(dtype, f): f(T{}, N{}) where N is `dtype` and T what it is added up in.
template <class F>
decltype(auto) dispatch_compute(DType dtype, F&& f) {
  if (dtype == DType::kBFloat16) return f(float{}, BFloat16{});
  return dispatch(dtype, [&]<class T>(T zero) { return f(zero, zero); });
}

}  // namespace ptrain
