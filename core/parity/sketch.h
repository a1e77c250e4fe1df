#pragma once

#include <array>
#include <cstdint>

namespace ptrain::parity {

// A tensor as a few sums of its elements, each with a sign and a place drawn from its index.
// Sketches of the pieces of a tensor add up to the tensor's, and the norm of a difference of
// sketches is, to one part in ten, that of the difference of the tensors: so tensors are compared
// that never meet, and a single wrong element shows in full.
class Sketch {
 public:
  static constexpr std::size_t kSums = 64;

  // `index` is the element's place in the whole tensor, flattened.
  void add(std::int64_t index, double value);
  void add(const Sketch& other, double factor = 1);
  double norm() const;

  std::array<double, kSums> sums{};
  bool operator==(const Sketch&) const = default;
};

// || a - b ||
double distance(const Sketch& a, const Sketch& b);

}  // namespace ptrain::parity
