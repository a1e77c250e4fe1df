#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <type_traits>
#include <vector>

#include "engine/base/tensor.h"

namespace ptrain::test {

// A matrix that owns its memory, with `gap` elements between rows that hold 777 and must stay so.
template <class T>
struct Matrix {
  using Wide = std::conditional_t<sizeof(T) == 2, float, T>;

  Matrix(std::int64_t num_rows, std::int64_t num_cols, std::int64_t gap = 0)
      : rows(num_rows),
        cols(num_cols),
        stride(num_cols + gap),
        values(static_cast<std::size_t>(rows * stride), T(777)) {}

  static Matrix random(std::int64_t rows, std::int64_t cols, unsigned seed, std::int64_t gap = 0) {
    Matrix result(rows, cols, gap);
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c)
        result(r, c) = static_cast<T>(static_cast<Wide>(normal(generator)));
    return result;
  }
  static Matrix filled(std::int64_t rows, std::int64_t cols, T value) {
    Matrix result(rows, cols);
    result.values.assign(result.values.size(), value);
    return result;
  }

  T& operator()(std::int64_t r, std::int64_t c) {
    return values[static_cast<std::size_t>(r * stride + c)];
  }
  T operator()(std::int64_t r, std::int64_t c) const {
    return values[static_cast<std::size_t>(r * stride + c)];
  }
  Tensor view() {
    constexpr DType kDType = sizeof(T) == 8   ? DType::kFloat64
                             : sizeof(T) == 4 ? DType::kFloat32
                                              : DType::kBFloat16;
    return {values.data(), kDType, rows, cols, stride};
  }
  bool gaps_untouched() const {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = cols; c < stride; ++c)
        if ((*this)(r, c) != T(777)) return false;
    return true;
  }

  std::int64_t rows, cols, stride;
  std::vector<T> values;
};

using Doubles = Matrix<double>;

inline double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t c = 0; c < a.cols; ++c) sum += a(r, c) * b(r, c);
  return sum;
}

// Largest |gradient - central difference of f over an element of x|, over all elements.
inline double gradient_error(Doubles& x, const Doubles& gradient,
                             const std::function<double()>& f) {
  constexpr double kStep = 1e-5;
  double worst = 0;
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t c = 0; c < x.cols; ++c) {
      const double kept = x(r, c);
      x(r, c) = kept + kStep;
      const double above = f();
      x(r, c) = kept - kStep;
      const double below = f();
      x(r, c) = kept;
      worst = std::fmax(worst, std::abs((above - below) / (2 * kStep) - gradient(r, c)));
    }
  return worst;
}

template <class T>
double largest_difference(const Matrix<T>& a, const Doubles& b) {
  double worst = 0;
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t c = 0; c < a.cols; ++c)
      worst = std::fmax(worst, std::abs(static_cast<double>(a(r, c)) - b(r, c)));
  return worst;
}

// The values of a matrix that rounds, exactly.
inline Doubles exactly(const Matrix<BFloat16>& rounded) {
  Doubles result(rounded.rows, rounded.cols);
  for (std::int64_t r = 0; r < rounded.rows; ++r)
    for (std::int64_t c = 0; c < rounded.cols; ++c)
      result(r, c) = static_cast<double>(static_cast<float>(rounded(r, c)));
  return result;
}

// How far a lies from b beyond half a unit of b's last place in bfloat16, 2^-8 of its value.
inline double beyond_rounding(const Matrix<BFloat16>& a, const Doubles& b) {
  double worst = 0;
  const Doubles values = exactly(a);
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t c = 0; c < a.cols; ++c)
      worst = std::fmax(worst, std::abs(values(r, c) - b(r, c)) - std::abs(b(r, c)) / 256);
  return worst;
}

}  // namespace ptrain::test
