#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace ptrain::dcp {

// What the `data.pkl` record of one item says: a tensor, or a plain value.

// How a tensor's elements lie in its storage record. All counts are in elements.
struct StoredTensor {
  std::string dtype;   // PyTorch's name: float32, bfloat16, int64 ...
  std::string record;  // data/0
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

// The row-major form of these sizes.
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& sizes);
// Bytes of one element; 0: a dtype that is not known here.
std::int64_t size_of_stored(const std::string& dtype);

Result<StoredTensor> read_tensor(std::span<const std::byte> pickle);
// Row-major from element 0 of data/0.
std::vector<std::byte> write_tensor(const std::string& dtype,
                                    const std::vector<std::int64_t>& sizes);

// None, bool, int, float, str, and lists, tuples and dicts with text keys of these. A tuple becomes
// an array.
Result<nlohmann::json> read_value(std::span<const std::byte> pickle);
std::vector<std::byte> write_value(const nlohmann::json& value);

// A whole item in memory: its plain value, or the number in a tensor of one element.
Result<nlohmann::json> read_small_item(std::span<const std::byte> item);

}  // namespace ptrain::dcp
