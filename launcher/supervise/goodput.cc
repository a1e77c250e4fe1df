#include "launcher/supervise/goodput.h"

#include <algorithm>

namespace ptrain::supervise {

void Goodput::step(std::int64_t step, double seconds) {
  while (!sums_.empty() && sums_.back().first >= step) sums_.pop_back();
  sums_.emplace_back(step, seconds + (sums_.empty() ? 0 : sums_.back().second));
}

double Goodput::trained_s(std::int64_t last_step) const {
  const auto after =
      std::ranges::upper_bound(sums_, last_step, {}, [](const auto& sum) { return sum.first; });
  return after == sums_.begin() ? 0 : std::prev(after)->second;
}

}  // namespace ptrain::supervise
