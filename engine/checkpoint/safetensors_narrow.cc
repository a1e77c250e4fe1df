#include "engine/checkpoint/safetensors_narrow.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/base/bfloat16.h"
#include "engine/base/engine_error.h"

namespace ptrain::checkpoint {
namespace {

constexpr std::uint16_t kHalfInfinity = 0x7c00;

// Of a value that is not negative.
std::uint16_t half_of(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if (word > 0x7f800000U) return 0x7e00;          // NaN
  if (word >= 0x477ff000U) return kHalfInfinity;  // 65520 and above
  // Below 2^-14 a half is a whole multiple of 2^-24.
  if (word < 0x38800000U) return static_cast<std::uint16_t>(std::lrint(std::ldexp(value, 24)));
  const std::uint32_t rounded = word + 0xfffU + ((word >> 13) & 1U);
  return static_cast<std::uint16_t>((rounded - 0x38000000U) >> 13);
}

bool to_half(std::span<const float> values, std::byte* out) {
  bool fits = true;
  for (const float value : values) {
    std::uint16_t bits = half_of(std::fabs(value));
    fits = fits && (bits != kHalfInfinity || std::isinf(value));
    if (std::signbit(value)) bits |= 0x8000;
    std::memcpy(out, &bits, sizeof bits);
    out += sizeof bits;
  }
  return fits;
}

}  // namespace

const ExportDType& export_dtype(const std::string& name) {
  static const std::array<ExportDType, 3> all{
      {{"fp32", "F32", "float32"}, {"bf16", "BF16", "bfloat16"}, {"fp16", "F16", "float16"}}};
  for (const ExportDType& dtype : all)
    if (dtype.name == name) return dtype;
  throw EngineError(ExitCode::kUsage, fmt::format("weights cannot be exported as '{}'", name),
                    "allowed: fp32, bf16, fp16");
}

bool narrow(std::span<const float> values, const ExportDType& dtype, std::byte* out) {
  if (dtype.name == "fp16") return to_half(values, out);
  if (dtype.name == "fp32") {
    std::memcpy(out, values.data(), values.size_bytes());
    return true;
  }
  for (const float value : values) {
    const BFloat16 rounded(value);
    std::memcpy(out, &rounded, sizeof rounded);
    out += sizeof rounded;
  }
  return true;
}

}  // namespace ptrain::checkpoint
