#include "engine/kernels/convert.h"

#include <algorithm>

#include "engine/base/bfloat16.h"
#include "engine/base/engine_error.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

template <class From, class To>
PT_INLINE void convert_row_body(const From* from, To* to, std::int64_t size) {
#pragma omp simd
  for (std::int64_t i = 0; i < size; ++i) to[i] = from[i];
}
PT_CLONES void convert_row(const float* from, BFloat16* to, std::int64_t size) {
  convert_row_body(from, to, size);
}
PT_CLONES void convert_row(const BFloat16* from, float* to, std::int64_t size) {
  convert_row_body(from, to, size);
}
template <class T>
void convert_row(const T* from, T* to, std::int64_t size) {
  std::copy_n(from, size, to);
}

template <class From, class To>
void convert_rows(const Tensor& from, const Tensor& to) {
  for (std::int64_t t = 0; t < from.rows; ++t)
    convert_row(from.as<From>() + t * from.stride, to.as<To>() + t * to.stride, from.cols);
}

}  // namespace

void convert(const Tensor& from, const Tensor& to) {
  PT_CHECK(from.rows == to.rows && from.cols == to.cols);
  if (from.dtype == DType::kFloat32 && to.dtype == DType::kBFloat16)
    return convert_rows<float, BFloat16>(from, to);
  if (from.dtype == DType::kBFloat16 && to.dtype == DType::kFloat32)
    return convert_rows<BFloat16, float>(from, to);
  PT_CHECK(from.dtype == to.dtype);
  if (from.dtype == DType::kBFloat16) return convert_rows<BFloat16, BFloat16>(from, to);
  dispatch(from.dtype, [&]<class T>(T) { convert_rows<T, T>(from, to); });
}

RowIn::RowIn(DType dtype, const Tensor& row) : row_(row) {
  if (row.dtype == dtype) return;
  PT_CHECK(dtype == DType::kFloat32 && row.rows == 1);
  copy_.resize(static_cast<std::size_t>(row.cols));
  row_ = contiguous(copy_.data(), dtype, 1, row.cols);
  convert(row, row_);
}

}  // namespace ptrain::kernels
