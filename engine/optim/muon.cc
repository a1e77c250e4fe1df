#include "engine/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "engine/base/engine_error.h"
#include "engine/optim/muon_passes.h"
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
  const Tensor x = contiguous(scratch.data, parameter.dtype, size.rows, size.cols);
  take_gradient(options, step.scale, {gradient, momentum_buffer}, x);
  apply_direction(
      parameter,
      orthogonalise(x, scratch.columns(x.num_elements(), scratch.cols - x.num_elements())),
      1 - decay, rate);
}

}  // namespace ptrain::optim
