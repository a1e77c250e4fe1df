#include "engine/base/tensor.h"

namespace ptrain {

Tensor Tensor::columns(std::int64_t begin, std::int64_t count) const {
  Tensor view = *this;
  view.data = static_cast<char*>(data) + begin * size_of(dtype);
  view.cols = count;
  return view;
}

Tensor Tensor::row_range(std::int64_t begin, std::int64_t count) const {
  Tensor view = *this;
  view.data = static_cast<char*>(data) + begin * stride * size_of(dtype);
  view.rows = count;
  return view;
}

Tensor contiguous(void* data, DType dtype, std::int64_t rows, std::int64_t cols) {
  return {data, dtype, rows, cols, cols};
}

}  // namespace ptrain
