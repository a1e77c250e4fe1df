#include "engine/kernels/swiglu.h"

#include "engine/base/engine_error.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

template <class T>
struct SwigluRow {
  T* gate;
  T* up;
  T* product;  // backward: its gradient, only read
  std::int64_t size;
};

template <class T>
PT_INLINE void forward_row_body(const SwigluRow<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i)
    row.product[i] = row.gate[i] / (T{1} + exponential(-row.gate[i])) * row.up[i];
}
PT_KERNEL(forward_row, SwigluRow)

template <class T>
PT_INLINE void backward_row_body(const SwigluRow<T>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) {
    const T gate = row.gate[i], up = row.up[i], dy = row.product[i];
    const T sigmoid = T{1} / (T{1} + exponential(-gate));
    row.gate[i] = dy * up * sigmoid * (T{1} + gate * (T{1} - sigmoid));
    row.up[i] = dy * gate * sigmoid;
  }
}
PT_KERNEL(backward_row, SwigluRow)

template <class T>
SwigluRow<T> row_of(const Tensor& gate_up, const Tensor& product, std::int64_t t) {
  T* gate = gate_up.as<T>() + t * gate_up.stride;
  return {gate, gate + product.cols, product.as<T>() + t * product.stride, product.cols};
}

}  // namespace

void swiglu(const Tensor& gate_up, const Tensor& product) {
  PT_CHECK(gate_up.cols == 2 * product.cols && gate_up.rows == product.rows);
  dispatch(gate_up.dtype, [&]<class T>(T) {
    for (std::int64_t t = 0; t < gate_up.rows; ++t) forward_row(row_of<T>(gate_up, product, t));
  });
}

void swiglu_backward(const Tensor& gate_up, const Tensor& dproduct) {
  PT_CHECK(gate_up.cols == 2 * dproduct.cols && gate_up.rows == dproduct.rows);
  dispatch(gate_up.dtype, [&]<class T>(T) {
    for (std::int64_t t = 0; t < gate_up.rows; ++t) backward_row(row_of<T>(gate_up, dproduct, t));
  });
}

}  // namespace ptrain::kernels
