#include "engine/kernels/rotary.h"

#include "engine/base/engine_error.h"
#include "engine/kernels/vector.h"

namespace ptrain::kernels {
namespace {

template <class T>
struct RotateRow {
  T* x;
  const T* angles;
  std::int64_t num_heads;
  std::int64_t half;
  T sign;
};

template <class T>
PT_INLINE void rotate_row_body(const RotateRow<T>& row) {
  for (std::int64_t head = 0; head < row.num_heads; ++head) {
    T* first = row.x + head * 2 * row.half;
    T* second = first + row.half;
#pragma omp simd
    for (std::int64_t j = 0; j < row.half; ++j) {
      const T a = first[j], b = second[j];
      const T cosine = row.angles[j], sine = row.angles[row.half + j] * row.sign;
      first[j] = a * cosine - b * sine;
      second[j] = b * cosine + a * sine;
    }
  }
}
PT_KERNEL(rotate_row, RotateRow)

template <class T>
PT_INLINE void rotate_row_of_neighbours_body(const RotateRow<T>& row) {
#pragma omp simd
  for (std::int64_t j = 0; j < row.half; ++j) {
    const T a = row.x[2 * j], b = row.x[2 * j + 1];
    const T cosine = row.angles[j], sine = row.angles[row.half + j] * row.sign;
    row.x[2 * j] = a * cosine - b * sine;
    row.x[2 * j + 1] = b * cosine + a * sine;
  }
}
PT_KERNEL(rotate_row_of_neighbours, RotateRow)

// turn_row(RotateRow) for every row of x.
template <class F>
void each_row(const RotaryAngles& angles, std::span<const std::int32_t> positions, const Tensor& x,
              Turn turn, const F& turn_row) {
  const Tensor& table = angles.tensor;
  PT_CHECK(static_cast<std::int64_t>(positions.size()) == x.rows && x.cols % table.cols == 0);
  dispatch(x.dtype, [&]<class T>(T) {
    for (std::int64_t t = 0; t < x.rows; ++t) {
      const std::int64_t position = positions[static_cast<std::size_t>(t)];
      PT_CHECK(position >= 0 && position < table.rows);
      turn_row(RotateRow<T>{x.as<T>() + t * x.stride, table.as<T>() + position * table.stride,
                            x.cols / table.cols, table.cols / 2,
                            turn == Turn::kForward ? T{1} : T{-1}});
    }
  });
}

}  // namespace

void rotate(const RotaryAngles& angles, std::span<const std::int32_t> positions, const Tensor& x,
            Turn turn) {
  each_row(angles, positions, x, turn, [](const auto& row) { rotate_row(row); });
}

void rotate_neighbours(const RotaryAngles& angles, std::span<const std::int32_t> positions,
                       const Tensor& x, Turn turn) {
  PT_CHECK(x.cols == angles.tensor.cols);
  each_row(angles, positions, x, turn, [](const auto& row) { rotate_row_of_neighbours(row); });
}

}  // namespace ptrain::kernels
