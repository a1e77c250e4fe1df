#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ptrain::supervise {

// Seconds of the steps that lasted: one that is made again after a restart counts once, as it was
// made last.
class Goodput {
 public:
  void step(std::int64_t step, double seconds);
  double trained_s(std::int64_t last_step) const;  // up to this one

 private:
  std::vector<std::pair<std::int64_t, double>> sums_;  // step, seconds up to its end; rising
};

}  // namespace ptrain::supervise
