#include "core/parity/sketch.h"

#include <cmath>

#include "core/packing/random.h"

namespace ptrain::parity {

void Sketch::add(std::int64_t index, double value) {
  const std::uint64_t bits = packing::RandomStream(static_cast<std::uint64_t>(index)).next();
  sums[bits % kSums] += (bits >> 63) == 0 ? value : -value;
}

void Sketch::add(const Sketch& other, double factor) {
  for (std::size_t i = 0; i < kSums; ++i) sums[i] += factor * other.sums[i];
}

double Sketch::norm() const {
  double squares = 0;
  for (const double sum : sums) squares += sum * sum;
  return std::sqrt(squares);
}

double distance(const Sketch& a, const Sketch& b) {
  Sketch difference = a;
  difference.add(b, -1);
  return difference.norm();
}

}  // namespace ptrain::parity
