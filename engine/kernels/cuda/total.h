#pragma once

#include "engine/kernels/cuda/launch.h"

namespace ptrain::kernels {

struct Total {
  const double* values;
  std::int64_t size;
  double* total;
  PT_DEVICE void operator()(const Block& block) const {
    const double sum = sum_over<double>(block, size, [&](std::int64_t i) { return values[i]; });
    block.each(1, [&](std::int64_t) { *total = sum; });
  }
};

// The sum of values that kernels made, for the host; waits for it.
inline double total_of(const Scratch<double>& values, std::int64_t size) {
  const Scratch<double> total(1);
  launch(1, 0, Total{values.data(), size, total.data()});
  return fetch(total.data());
}

}  // namespace ptrain::kernels
