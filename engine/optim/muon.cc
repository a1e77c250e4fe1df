#include "engine/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/optim/newton_schulz.h"

namespace ptrain::optim {
namespace {

// A matrix as the rule wants it, no taller than wide.
struct Turned {
  bool transposed;
  std::int64_t rows, cols;
};
Turned turned(std::int64_t rows, std::int64_t cols) {
  return rows > cols ? Turned{true, cols, rows} : Turned{false, rows, cols};
}

double rate_factor(const MuonOptions& options, const Tensor& matrix) {
  const auto rows = static_cast<double>(matrix.rows), cols = static_cast<double>(matrix.cols);
  if (options.match_rms_adamw) return 0.2 * std::sqrt(std::max(rows, cols));
  return std::sqrt(std::max(1.0, rows / cols));
}

// Moves the mean of gradients, and writes what is to be orthogonalised, turned.
template <class T>
void take_gradient(const MuonOptions& options, T scale, const Tensor& gradient,
                   const Tensor& momentum_buffer, const Tensor& to) {
  const auto momentum = static_cast<T>(options.momentum);
  const auto rest = static_cast<T>(1 - options.momentum);
  const bool transposed = to.rows != gradient.rows;
  for (std::int64_t row = 0; row < gradient.rows; ++row) {
    const T* gradients = gradient.as<T>() + row * gradient.cols;
    T* buffer = momentum_buffer.as<T>() + row * gradient.cols;
    T* target = to.as<T>() + (transposed ? row : row * to.cols);
    const std::int64_t stride = transposed ? to.cols : 1;
    for (std::int64_t i = 0; i < gradient.cols; ++i) {
      const T value = gradients[i] * scale;
      buffer[i] = momentum * buffer[i] + rest * value;
      target[i * stride] = options.nesterov ? rest * value + momentum * buffer[i] : buffer[i];
    }
  }
}

template <class T>
void apply(const Tensor& parameter, const Tensor& direction, T keep, T rate) {
  const bool transposed = direction.rows != parameter.rows;
  for (std::int64_t row = 0; row < parameter.rows; ++row) {
    T* values = parameter.as<T>() + row * parameter.cols;
    const T* source = direction.as<T>() + (transposed ? row : row * direction.cols);
    const std::int64_t stride = transposed ? direction.cols : 1;
    for (std::int64_t i = 0; i < parameter.cols; ++i)
      values[i] = values[i] * keep - rate * source[i * stride];
  }
}

}  // namespace

std::int64_t muon_scratch(std::int64_t rows, std::int64_t cols) {
  const Turned size = turned(rows, cols);
  return 2 * size.rows * (size.rows + size.cols);
}

void muon(const MuonOptions& options, const Step& step, const Tensor& parameter,
          const Tensor& gradient, const Tensor& momentum_buffer, const Tensor& scratch) {
  const Turned size = turned(parameter.rows, parameter.cols);
  PT_CHECK(gradient.rows == parameter.rows && momentum_buffer.rows == parameter.rows);
  PT_CHECK(scratch.num_elements() >= muon_scratch(parameter.rows, parameter.cols));
  const double decay = step.decays ? step.learning_rate * options.weight_decay : 0;
  const double rate = step.learning_rate * rate_factor(options, parameter);
  dispatch(parameter.dtype, [&]<class T>(T) {
    const Tensor x = contiguous(scratch.data, parameter.dtype, size.rows, size.cols);
    const Tensor rest = contiguous(scratch.as<T>() + x.num_elements(), parameter.dtype, 1,
                                   scratch.num_elements() - x.num_elements());
    take_gradient(options, static_cast<T>(step.scale), gradient, momentum_buffer, x);
    apply(parameter, orthogonalise(x, rest), static_cast<T>(1 - decay), static_cast<T>(rate));
  });
}

}  // namespace ptrain::optim
