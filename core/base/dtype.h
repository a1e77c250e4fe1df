#pragma once

#include <cstdint>
#include <string_view>

namespace ptrain {

enum class DType : std::uint8_t { kFloat32, kFloat64, kBFloat16, kInt32, kInt64, kUInt8 };

constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return 1;
    case DType::kBFloat16:
      return 2;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUInt8:
      return "uint8";
  }
  return "";
}

// What numbers of a dtype are added up in.
constexpr DType wide_of(DType dtype) { return dtype == DType::kBFloat16 ? DType::kFloat32 : dtype; }

}  // namespace ptrain
