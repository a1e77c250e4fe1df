#pragma once

#include <compare>
#include <cstdint>

namespace ptrain {

// A number with a unit: quantities of one unit add and compare, and scale by plain numbers.
template <class Unit, class Value>
struct Quantity {
  Value value{};

  auto operator<=>(const Quantity&) const = default;
  Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  friend Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend Quantity operator*(Quantity a, Value scale) { return {a.value * scale}; }
  friend Quantity operator*(Value scale, Quantity a) { return {a.value * scale}; }
};

using Bytes = Quantity<struct BytesUnit, std::int64_t>;
using Seconds = Quantity<struct SecondsUnit, double>;

// A position in the world of a job, 0-based; explicit, so that a stage or a count cannot stand for
// it.
struct Rank {
  int value = 0;
  auto operator<=>(const Rank&) const = default;
};

}  // namespace ptrain
