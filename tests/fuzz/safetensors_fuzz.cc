// Any bytes are refused as a safetensors header or index, or give tensors that fill their data
// without overlap or hole, and names of files that stay in their folder; what is read, written
// again, reads the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "core/safetensors/header.h"
#include "core/safetensors/index.h"

namespace {

using namespace ptrain;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_index(std::string_view text) {
  const auto weights = safetensors::read_index(text);
  if (!weights) return;
  for (const auto& [name, file] : *weights)
    require(file != "." && file != ".." && file.find('/') == std::string::npos);
  require(safetensors::read_index(safetensors::write_index(*weights, 0)) == *weights);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(input), size);
  read_index(text);
  const auto start = std::as_bytes(std::span(text)).first(std::min<std::size_t>(size, 8));
  const auto length = safetensors::header_length(start, static_cast<std::int64_t>(size));
  if (!length) return 0;
  require(*length >= 0 && *length <= static_cast<std::int64_t>(size) - 8);
  const auto header = safetensors::read_header(text.substr(8, static_cast<std::size_t>(*length)));
  if (!header) return 0;
  std::int64_t end = 0;
  for (const auto& tensor : header->tensors) {
    require(tensor.begin == end && tensor.end >= tensor.begin);
    end = tensor.end;
  }
  const std::string again = safetensors::write_header(header->tensors, header->metadata);
  require(safetensors::read_header(std::string_view(again).substr(8)) == *header);
  return 0;
}
