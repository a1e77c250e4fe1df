#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ptrain::safetensors {

// A file is the length of its header in 8 bytes, little-endian; the header, a JSON object; the data
// of all tensors, row-major and little-endian.

inline constexpr std::int64_t kLengthBytes = 8;
inline constexpr std::int64_t kMostHeader = 100'000'000;  // as the format's own library has it

struct Tensor {
  std::string name;
  std::string dtype;  // as the format writes it: F32, BF16 ...
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // bytes after the header
  std::int64_t end = 0;
  bool operator==(const Tensor&) const = default;
};

struct Header {
  std::vector<Tensor> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
  std::int64_t data_bytes() const { return tensors.empty() ? 0 : tensors.back().end; }
  bool operator==(const Header&) const = default;
};

// Bytes of an element; 0: no such dtype is known.
std::int64_t element_bytes(std::string_view dtype);
// Bytes that shape and dtype need; -1: more than 63 bits hold.
std::int64_t whole_bytes(const Tensor& tensor);

// The length of the header of a file of `file_bytes` that begins with these eight.
Result<std::int64_t> header_length(std::span<const std::byte> start, std::int64_t file_bytes);

// Errors (kUnusable): anything but tensors of known dtypes, in the bytes that their shapes need,
// that lie one after the other without overlap or hole; names that a terminal would not show.
Result<Header> read_header(std::string_view json);

// The start of a file: length and header, with blanks behind it so that data begins at a multiple
// of eight bytes. Places the tensors one after the other; begin and end need not be set.
std::string write_header(std::vector<Tensor> tensors,
                         const std::map<std::string, std::string>& metadata);

}  // namespace ptrain::safetensors
