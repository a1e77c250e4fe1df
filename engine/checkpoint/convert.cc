#include "engine/checkpoint/convert.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace ptrain::checkpoint {

namespace {

bool is_float(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

float from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  float value = 0;
  if (exponent == 0)
    value = std::ldexp(static_cast<float>(fraction), -24);
  else if (exponent < 31)
    value = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  else
    value = fraction == 0 ? HUGE_VALF : std::nanf("");
  return bits & 0x8000 ? -value : value;
}

float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

template <class From, class To, class F>
void each(std::span<const std::byte> from, std::byte* to, F&& f) {
  for (std::size_t i = 0; i < from.size() / sizeof(From); ++i) {
    From source;
    std::memcpy(&source, from.data() + i * sizeof(From), sizeof(From));
    const To value = static_cast<To>(f(source));
    std::memcpy(to + i * sizeof(To), &value, sizeof(To));
  }
}

template <class To>
void to_float(std::span<const std::byte> from, const std::string& stored, std::byte* to) {
  const auto same = [](auto value) { return value; };
  if (stored == "float32") return each<float, To>(from, to, same);
  if (stored == "float64") return each<double, To>(from, to, same);
  if (stored == "float16") return each<std::uint16_t, To>(from, to, from_half);
  each<std::uint16_t, To>(from, to, from_bfloat16);
}

}  // namespace

bool convertible(const std::string& stored, DType wanted) {
  if (stored == name_of(wanted)) return true;
  return is_float(wanted) && (stored == "float32" || stored == "float64" || stored == "float16" ||
                              stored == "bfloat16");
}

void convert(std::span<const std::byte> from, const std::string& stored, std::byte* to,
             DType wanted) {
  if (stored == name_of(wanted))
    std::memcpy(to, from.data(), from.size());
  else if (wanted == DType::kFloat32)
    to_float<float>(from, stored, to);
  else
    to_float<double>(from, stored, to);
}

}  // namespace ptrain::checkpoint
