#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/base/tensor.h"

namespace ptrain::kernels {

// Cosines, then sines, of every angle of positions [0, num_positions): position x frequency of the
// pair. Angles are made in double, then cast. Layout [num_positions, head_dim]: cosines in the
// first half of a row.
struct RotaryAngles {
  RotaryAngles(DType dtype, std::int64_t num_positions, std::int64_t head_dim);
  ~RotaryAngles();
  RotaryAngles(const RotaryAngles&) = delete;
  RotaryAngles& operator=(const RotaryAngles&) = delete;
  Tensor tensor;
};

// The angles that the layers of one model share. It grows when a longer position comes: what a
// caller holds is never changed. Any thread.
class RotaryTable {
 public:
  // frequencies: radians a position, one a pair; cosines and sines are multiplied by `factor`.
  RotaryTable(std::vector<double> frequencies, double factor, DType dtype);
  std::shared_ptr<const RotaryAngles> angles(std::int64_t num_positions) const;

 private:
  std::vector<double> frequencies_;
  double factor_;
  DType dtype_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const RotaryAngles> angles_;
};

enum class Turn { kForward, kBack };

// Turns every head of `x` [T, heads * head_dim] in place by the angles of its row's position; kBack
// is the gradient, and the inverse where the table's factor is 1. Halves of a head make the pairs:
// (j, j + head_dim / 2).
void rotate(const RotaryAngles& angles, std::span<const std::int32_t> positions, const Tensor& x,
            Turn turn);

// The same of one head, x [T, head_dim], where neighbours make the pairs: (2 j, 2 j + 1).
void rotate_neighbours(const RotaryAngles& angles, std::span<const std::int32_t> positions,
                       const Tensor& x, Turn turn);

}  // namespace ptrain::kernels
