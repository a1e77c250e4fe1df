#pragma once

#include <span>

#include "engine/comm/communicator.h"

namespace ptrain::tests {

// What every backend must do, as bodies that each rank of a world plays; they throw what is wrong.
// Expected values are computed on each rank from formulas, the sums by hand in rank order.
struct CommCheck {
  const char* name;
  void (*body)(comm::Communicator&);
};
std::span<const CommCheck> comm_battery();

}  // namespace ptrain::tests
