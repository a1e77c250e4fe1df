#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"

namespace ptrain::data {

// What Megatron's .idx says of its .bin of tokens, which lie there end to end.
struct MegatronIndex {
  std::int64_t token_bytes = 2;  // 2 (unsigned) or 4 (signed)
  std::vector<std::int64_t>
      begin;  // where each document begins, in tokens, and the end of the last
  std::int64_t num_tokens() const { return begin.back(); }
  bool operator==(const MegatronIndex&) const = default;
};

// kUnusable, with the reason, for bytes that are no such index, or one whose sequences do not lie
// end to end or are not all in documents. A document without tokens is left out.
Result<MegatronIndex> megatron_index_from_bytes(std::span<const std::byte> bytes);

}  // namespace ptrain::data
