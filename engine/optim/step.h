#pragma once

#include <cstdint>

namespace ptrain::optim {

// What all rules are told of one step. `scale` multiplies the gradient first (clip coefficient /
// number of targets). step counts from 1.
struct Step {
  double learning_rate = 0;
  std::int64_t step = 1;
  double scale = 1;
  bool decays = true;
};

}  // namespace ptrain::optim
