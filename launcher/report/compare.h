#pragma once

#include <string>
#include <vector>

namespace ptrain::report {

// What was predicted and what was measured of one quantity. NaN: not known.
struct Pair {
  std::string name;
  double predicted = 0, measured = 0;
  double low = 0, high = 0;  // where the measurement should lie; both 0: not said
  bool estimate = false;     // predicted roughly, and not to the byte
};

// A row a pair: two bars on one scale, the numbers, and the difference.
std::string bars(const std::vector<Pair>& pairs, std::string (*text)(double));

// "exact", "+3.2 %", or "" where one of the two is not known.
std::string difference_of(const Pair& pair);

}  // namespace ptrain::report
