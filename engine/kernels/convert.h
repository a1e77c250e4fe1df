#pragma once

#include <vector>

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// to = from, in the dtype of `to`; one shape, rows may be strided. From float32 to bfloat16 rounds
// to nearest, ties to even. Dtypes: equal ones, or float32 and bfloat16 either way.
void convert(const Tensor& from, const Tensor& to);

// The values of a row [1, n] in `dtype`: the row itself where it is of that dtype, else a copy.
class RowIn {
 public:
  RowIn(DType dtype, const Tensor& row);
  RowIn(const RowIn&) = delete;
  RowIn& operator=(const RowIn&) = delete;
  template <class T>
  const T* as() const {
    return row_.as<const T>();
  }

 private:
  std::vector<float> copy_;
  Tensor row_;
};

}  // namespace ptrain::kernels
