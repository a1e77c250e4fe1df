#pragma once

#include <bit>
#include <cstdint>

namespace ptrain {

// The upper half of a float: 8 bits of exponent, 8 of significand (one of them implied). Only kept
// and converted; arithmetic is done in float.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  explicit constexpr BFloat16(float value) : bits(rounded(value)) {}
  // Loops that store with this vectorise; with a copy of a whole BFloat16 they do not.
  constexpr BFloat16& operator=(float value) {
    bits = rounded(value);
    return *this;
  }
  constexpr operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  bool operator==(const BFloat16&) const = default;

 private:
  // To nearest, ties to even, as PyTorch does; a NaN stays one. Without branches, so that loops
  // vectorise.
  static constexpr std::uint16_t rounded(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t nearest = word + 0x7fffu + ((word >> 16) & 1u);
    const std::uint32_t quiet = word | 0x00400000u;
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    return static_cast<std::uint16_t>((is_nan ? quiet : nearest) >> 16);
  }
};
static_assert(sizeof(BFloat16) == 2);

}  // namespace ptrain
