#pragma once

#include <array>
#include <cstdint>

namespace ptrain::optim {

// The 256 values from -1 (or 0) to 1, ascending, that a byte stands for in 8-bit optimizer states
// (Dettmers et al., "8-bit Optimizers via Block-wise Quantization", 2021): denser towards zero, by
// powers of ten from 1e-7 up, each decade cut evenly into twice as many values as the one below.
class DynamicMap {
 public:
  static const DynamicMap& with_sign();     // for means of gradients
  static const DynamicMap& without_sign();  // for means of squares

  float value(std::uint8_t code) const { return values_[code]; }
  const std::array<float, 256>& values() const { return values_; }
  // The least that still means each code.
  const std::array<float, 256>& thresholds() const { return thresholds_; }
  // The code of the nearest value; halfway, of the larger.
  std::uint8_t nearest(float value) const;

 private:
  explicit DynamicMap(bool has_sign);
  std::array<float, 256> values_{};
  std::array<float, 256> thresholds_{};
};

}  // namespace ptrain::optim
