#include "engine/optim/muon_passes.h"

namespace ptrain::optim {

void take_gradient(const MuonOptions& options, double scale, const MuonGradient& in,
                   const Tensor& to) {
  const bool transposed = to.rows != in.gradient.rows;
  const std::int64_t rows = in.gradient.rows, cols = in.gradient.cols;
  dispatch(to.dtype, [&]<class T>(T) {
    const auto momentum = static_cast<T>(options.momentum);
    const auto rest = static_cast<T>(1 - options.momentum);
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* gradients = in.gradient.as<T>() + row * cols;
      T* buffer = in.momentum_buffer.as<T>() + row * cols;
      T* target = to.as<T>() + (transposed ? row : row * to.cols);
      const std::int64_t stride = transposed ? to.cols : 1;
      for (std::int64_t i = 0; i < cols; ++i) {
        const T value = gradients[i] * static_cast<T>(scale);
        buffer[i] = momentum * buffer[i] + rest * value;
        target[i * stride] = options.nesterov ? rest * value + momentum * buffer[i] : buffer[i];
      }
    }
  });
}

void apply_direction(const Tensor& parameter, const Tensor& direction, double keep, double rate) {
  const bool transposed = direction.rows != parameter.rows;
  dispatch(parameter.dtype, [&]<class T>(T) {
    for (std::int64_t row = 0; row < parameter.rows; ++row) {
      T* values = parameter.as<T>() + row * parameter.cols;
      const T* source = direction.as<T>() + (transposed ? row : row * direction.cols);
      const std::int64_t stride = transposed ? direction.cols : 1;
      for (std::int64_t i = 0; i < parameter.cols; ++i)
        values[i] = values[i] * static_cast<T>(keep) - static_cast<T>(rate) * source[i * stride];
    }
  });
}

}  // namespace ptrain::optim
