#include "core/safetensors/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "core/safetensors/json.h"

namespace ptrain::safetensors {
namespace {

using nlohmann::json;
using Entry = std::pair<std::string_view, std::int64_t>;

constexpr const char* kMetadata = "__metadata__";
constexpr int kDepth = 3;  // {name: {shape: [...]}}

constexpr std::array<Entry, 16> kDTypes{{{"F32", 4},
                                         {"BF16", 2},
                                         {"F16", 2},
                                         {"F64", 8},
                                         {"I64", 8},
                                         {"I32", 4},
                                         {"I16", 2},
                                         {"I8", 1},
                                         {"U64", 8},
                                         {"U32", 4},
                                         {"U16", 2},
                                         {"U8", 1},
                                         {"BOOL", 1},
                                         {"F8_E4M3", 1},
                                         {"F8_E5M2", 1},
                                         {"F8_E8M0", 1}}};

tl::unexpected<Error> refuse(std::string message) {
  return fail(ExitCode::kUnusable, std::move(message));
}

// Whole numbers that are not negative and fit; false: anything else.
bool read_sizes(const json& array, std::vector<std::int64_t>& sizes) {
  if (!array.is_array()) return false;
  for (const json& size : array) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
      return false;
    sizes.push_back(size.get<std::int64_t>());
  }
  return true;
}

Result<Tensor> read_tensor(const std::string& name, const json& entry) {
  const auto wrong = [&](std::string_view why) {
    return refuse(fmt::format("tensor '{}': {}", shown(name), why));
  };
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets"))
    return wrong("it has not exactly the fields dtype, shape and data_offsets");
  Tensor tensor{name, "", {}, 0, 0};
  if (entry["dtype"].is_string()) tensor.dtype = entry["dtype"].get<std::string>();
  if (element_bytes(tensor.dtype) == 0)
    return wrong(
        fmt::format("its dtype {} is not known", is_printable(tensor.dtype) ? tensor.dtype : ""));
  if (!read_sizes(entry["shape"], tensor.shape))
    return wrong("its shape is no list of whole numbers");
  std::vector<std::int64_t> offsets;
  if (!read_sizes(entry["data_offsets"], offsets) || offsets.size() != 2)
    return wrong("its data_offsets are not two whole numbers");
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  const std::int64_t bytes = whole_bytes(tensor);
  if (bytes < 0) return wrong("its shape is absurdly large");
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != bytes)
    return wrong(
        fmt::format("its data_offsets span other bytes than the {} of its shape and dtype", bytes));
  return tensor;
}

Status read_metadata(const json& entry, std::map<std::string, std::string>& metadata) {
  if (!entry.is_object()) return refuse("__metadata__ is no mapping");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return refuse("__metadata__ holds other things than texts");
    metadata[key] = value.get<std::string>();
  }
  return {};
}

// Sorted by their data, each tensor begins where the one before it ends.
Status check_places(const std::vector<Tensor>& tensors) {
  std::int64_t end = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.begin != end)
      return refuse(fmt::format("tensor '{}': its data {}", shown(tensor.name),
                                tensor.begin < end ? "overlaps that of another tensor"
                                                   : "begins behind a hole that is no tensor's"));
    end = tensor.end;
  }
  return {};
}

}  // namespace

std::int64_t element_bytes(std::string_view dtype) {
  const auto* found = std::find_if(kDTypes.begin(), kDTypes.end(),
                                   [&](const Entry& entry) { return entry.first == dtype; });
  return found == kDTypes.end() ? 0 : found->second;
}

std::int64_t whole_bytes(const Tensor& tensor) {
  std::int64_t bytes = element_bytes(tensor.dtype);
  for (const std::int64_t size : tensor.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return -1;
  return bytes;
}

Result<std::int64_t> header_length(std::span<const std::byte> start, std::int64_t file_bytes) {
  if (start.size() < kLengthBytes || file_bytes < kLengthBytes)
    return refuse(fmt::format("it is cut off: {} bytes hold no header", file_bytes));
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    length = length << 8 | std::to_integer<std::uint64_t>(start[i]);
  if (length > std::uint64_t{kMostHeader})
    return refuse(
        fmt::format("its header is said to have {} bytes, more than {}: it is no "
                    "safetensors file",
                    length, kMostHeader));
  const auto bytes = static_cast<std::int64_t>(length);
  if (bytes > file_bytes - kLengthBytes)
    return refuse(fmt::format("it is cut off inside its header: {} bytes instead of {} or more",
                              file_bytes, bytes + kLengthBytes));
  return bytes;
}

Result<Header> read_header(std::string_view text) {
  if (!text.starts_with('{')) return refuse("its header is no JSON object");
  PTRAIN_TRY(const json object, parse_object(text, "its header", kDepth));
  Header header;
  for (const auto& [name, entry] : object.items()) {
    if (name == kMetadata) {
      PTRAIN_CHECK(read_metadata(entry, header.metadata));
      continue;
    }
    PTRAIN_TRY(Tensor tensor, read_tensor(name, entry));
    header.tensors.push_back(std::move(tensor));
  }
  std::ranges::sort(header.tensors, [](const Tensor& a, const Tensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  PTRAIN_CHECK(check_places(header.tensors));
  return header;
}

std::string write_header(std::vector<Tensor> tensors,
                         const std::map<std::string, std::string>& metadata) {
  json object = json::object();
  if (!metadata.empty()) object[kMetadata] = metadata;
  std::int64_t at = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t end = at + whole_bytes(tensor);
    object[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = object.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  std::string start;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    start += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return start + text;
}

}  // namespace ptrain::safetensors
