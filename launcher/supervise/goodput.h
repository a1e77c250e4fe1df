#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/run/event.h"

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

// Of a whole run, whatever the number of its supervisors.

// Seconds in which they held its machines: each from its start to the last event that it wrote, so
// that one that was killed counts too.
double held_s(std::span<const run::Event> events);

// Seconds of the steps in the text of metrics.jsonl, up to this one. Steps that did not last are
// not there: the next attempt cuts them off.
double trained_s(std::string_view metrics, std::int64_t last_step);

}  // namespace ptrain::supervise
