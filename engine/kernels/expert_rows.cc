#include "engine/kernels/expert_rows.h"

#include "engine/base/engine_error.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/fold.h"
#include "engine/kernels/router.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

template <class T, class N>
struct Row {
  const N* x;
  T* y;
  std::int64_t size;
  T factor;
};

template <class T, class N>
PT_INLINE void add_scaled_body(const Row<T, N>& row) {
#pragma omp simd
  for (std::int64_t i = 0; i < row.size; ++i) row.y[i] += row.factor * T(row.x[i]);
}
PT_COMPUTE_KERNEL(add_scaled, Row)

template <class T, class N>
struct Dot {
  const T* a;
  const N* b;
  std::int64_t size;
  T* sum;
};

template <class T, class N>
PT_INLINE void dot_body(const Dot<T, N>& dot) {
  *dot.sum = sum_over<T>(dot.size, [&](std::int64_t i) { return dot.a[i] * T(dot.b[i]); });
}
PT_COMPUTE_KERNEL(dot, Dot)

template <class T>
T weight_of(const Tensor& weights, std::int64_t slot) {
  return weights.as<T>()[slot / weights.cols * weights.stride + slot % weights.cols];
}

}  // namespace

Tensor ExpertRuns::rows_of(const Tensor& tensor, std::int64_t e) const {
  return tensor.row_range(begin[at(e)], of_expert(e));
}

ExpertRows sort_by_expert(const Tensor& chosen, std::int64_t num_experts) {
  ExpertRows rows;
  rows.top_k = chosen.cols;
  rows.begin.assign(at(num_experts + 1), 0);
  rows.row_of.assign(at(chosen.num_elements()), -1);
  PT_CHECK(chosen.stride == chosen.cols);
  const auto* choice = chosen.as<std::int32_t>();
  for (std::int64_t slot = 0; slot < chosen.num_elements(); ++slot)
    if (!is_dropped(choice[slot])) ++rows.begin[at(choice[slot] + 1)];
  for (std::size_t e = 1; e < rows.begin.size(); ++e) rows.begin[e] += rows.begin[e - 1];
  rows.slots.resize(at(rows.begin.back()));
  std::vector<std::int64_t> next = rows.begin;
  for (std::int64_t slot = 0; slot < chosen.num_elements(); ++slot) {
    if (is_dropped(choice[slot])) continue;
    const std::int64_t row = next[at(choice[slot])]++;
    rows.slots[at(row)] = static_cast<std::int32_t>(slot);
    rows.row_of[at(slot)] = static_cast<std::int32_t>(row);
  }
  return rows;
}

void take_rows(const ExpertRows& rows, const Tensor& x, const Tensor& y) {
  PT_CHECK(y.rows == rows.num_rows() && x.cols == y.cols);
  for (std::int64_t r = 0; r < y.rows; ++r)
    convert(x.row_range(rows.slots[at(r)] / rows.top_k, 1), y.row_range(r, 1));
}

void add_slots(const ExpertRows& rows, const Tensor& x, const Tensor& weights, const Tensor& y) {
  PT_CHECK(x.cols == y.cols && y.rows * rows.top_k == std::ssize(rows.row_of));
  dispatch_compute(x.dtype, [&]<class T, class N>(T, N) {
    for (std::int64_t slot = 0; slot < std::ssize(rows.row_of); ++slot) {
      const std::int64_t row = rows.row_of[at(slot)];
      if (row < 0) continue;
      add_scaled(Row<T, N>{x.as<N>() + row * x.stride, y.as<T>() + slot / rows.top_k * y.stride,
                           x.cols, weights.empty() ? T{1} : weight_of<T>(weights, slot)});
    }
  });
}

void take_weights(const ExpertRows& rows, const Tensor& weights, const Tensor& y) {
  PT_CHECK(y.rows == rows.num_rows() && y.stride == 1);
  dispatch(y.dtype, [&]<class T>(T) {
    for (std::int64_t r = 0; r < y.rows; ++r)
      y.as<T>()[r] = weight_of<T>(weights, rows.slots[at(r)]);
  });
}

void add_weights(const ExpertRows& rows, const Tensor& x, const Tensor& weights) {
  PT_CHECK(x.rows == rows.num_rows() && x.stride == 1 && weights.stride == weights.cols);
  dispatch(x.dtype, [&]<class T>(T) {
    for (std::int64_t r = 0; r < x.rows; ++r) weights.as<T>()[rows.slots[at(r)]] += x.as<T>()[r];
  });
}

void dot_rows(const Tensor& a, const Tensor& b, const Tensor& dots) {
  PT_CHECK(a.rows == b.rows && a.cols == b.cols && dots.rows == a.rows && dots.stride == 1);
  dispatch_compute(b.dtype, [&]<class T, class N>(T, N) {
    for (std::int64_t r = 0; r < a.rows; ++r)
      dot(Dot<T, N>{a.as<T>() + r * a.stride, b.as<N>() + r * b.stride, a.cols, dots.as<T>() + r});
  });
}

void scale_rows(const Tensor& factors, const Tensor& x) {
  PT_CHECK(x.rows == factors.rows && factors.stride == 1);
  dispatch_compute(x.dtype, [&]<class T, class N>(T, N) {
    for (std::int64_t r = 0; r < x.rows; ++r) {
      const T factor = factors.as<T>()[r];
      N* values = x.as<N>() + r * x.stride;
      for (std::int64_t i = 0; i < x.cols; ++i) values[i] = N(T(values[i]) * factor);
    }
  });
}

}  // namespace ptrain::kernels
