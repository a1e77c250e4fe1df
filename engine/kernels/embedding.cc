#include "engine/kernels/embedding.h"

#include <algorithm>

#include "engine/base/engine_error.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

template <class T, class N>
struct AddRow {
  const N* x;
  T* sum;
  std::int64_t size;
};

template <class T, class N>
PT_INLINE void add_row_body(const AddRow<T, N>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) row.sum[i] += T(row.x[i]);
}
PT_COMPUTE_KERNEL(add_row, AddRow)

std::int64_t checked_token(std::span<const std::int32_t> tokens, std::int64_t t,
                           const Tensor& table) {
  const std::int64_t token = tokens[static_cast<std::size_t>(t)];
  PT_CHECK(token >= 0 && token < table.rows);
  return token;
}

}  // namespace

void gather_rows(const Tensor& table, std::span<const std::int32_t> tokens, const Tensor& y) {
  PT_CHECK(static_cast<std::int64_t>(tokens.size()) == y.rows && table.cols == y.cols &&
           wide_of(table.dtype) == y.dtype);
  dispatch_compute(table.dtype, [&]<class T, class N>(T, N) {
    for (std::int64_t t = 0; t < y.rows; ++t)
      std::copy_n(table.as<N>() + checked_token(tokens, t, table) * table.stride, y.cols,
                  y.as<T>() + t * y.stride);
  });
}

void add_rows(const Tensor& table, std::span<const std::int32_t> rows, const Tensor& y) {
  PT_CHECK(static_cast<std::int64_t>(rows.size()) == y.rows && table.cols == y.cols &&
           wide_of(table.dtype) == y.dtype);
  dispatch_compute(table.dtype, [&]<class T, class N>(T, N) {
    for (std::int64_t t = 0; t < y.rows; ++t)
      add_row(AddRow<T, N>{table.as<N>() + checked_token(rows, t, table) * table.stride,
                           y.as<T>() + t * y.stride, y.cols});
  });
}

void scatter_add_rows(const Tensor& dy, std::span<const std::int32_t> tokens,
                      const Tensor& dtable) {
  PT_CHECK(static_cast<std::int64_t>(tokens.size()) == dy.rows && dtable.cols == dy.cols);
  dispatch(dy.dtype, [&]<class T>(T) {
    for (std::int64_t t = 0; t < dy.rows; ++t)
      add_row(AddRow<T, T>{dy.as<T>() + t * dy.stride,
                           dtable.as<T>() + checked_token(tokens, t, dtable) * dtable.stride,
                           dy.cols});
  });
}

}  // namespace ptrain::kernels
