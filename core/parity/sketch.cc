#include "core/parity/sketch.h"

#include <cmath>

namespace ptrain::parity {

namespace {

// The finaliser of SplitMix64: neighbouring indices get unrelated bits.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

void Sketch::add(std::int64_t index, double value) {
  const std::uint64_t bits = mixed(static_cast<std::uint64_t>(index));
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
