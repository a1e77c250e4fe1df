// Any bytes are refused as an index of Megatron, or they give documents that follow each other.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <span>

#include "core/data/megatron_index.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  using namespace ptrain;
  const std::span bytes(reinterpret_cast<const std::byte*>(input), size);
  const auto index = data::megatron_index_from_bytes(bytes);
  if (!index) {
    require(index.error().code == ExitCode::kUnusable && !index.error().message.empty());
    return 0;
  }
  const auto& begin = index->begin;
  require(index->token_bytes == 2 || index->token_bytes == 4);
  require(!begin.empty() && begin.front() == 0);
  require(std::ranges::adjacent_find(begin, std::greater_equal<>()) == begin.end());
  return 0;
}
