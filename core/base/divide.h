#pragma once

#include <type_traits>

namespace ptrain {

// a / b for numbers that are not negative, rounded up; nothing in between can overflow.
template <class T>
constexpr T divide_up(T a, std::type_identity_t<T> b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// The least multiple of `step` that is not below a.
template <class T>
constexpr T round_up(T a, std::type_identity_t<T> step) {
  return divide_up(a, step) * step;
}

}  // namespace ptrain
