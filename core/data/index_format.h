#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace ptrain::data {

// Tokens [begin, end).
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const TokenRange&) const = default;
};

// PATH.bin: tokens of 2 or 4 bytes, documents end to end. PATH.idx, all little-endian:
//   char[8]  "PTRNIDX\0"
//   u32      version = 2
//   u32      bytes of a token: 2 or 4
//   u64      documents
//   u64      tokens
//   u64      XXH3-64 of PATH.bin
//   char[32] content hash, hexadecimal: of the sources' bytes in order and the tokenizer
//   u32      vocabulary: every token is below it
//   u32      token that fills rows
//   u64      sources
//   u64      silent ranges
//   u64[documents + 1] where each document begins, in tokens; the last is `tokens`; rising
//   u64[sources + 1]   the first document of each source; the last is `documents`; not falling
//   u64[2 x silent]    begin and end of each range of tokens that are never targets; ascending
//   u64      XXH3-64 of everything above
struct IndexTable {
  std::uint32_t token_bytes = 2;
  std::uint32_t vocabulary = 0;
  std::uint32_t pad = 0;
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> sources;
  std::vector<TokenRange> silent;
  std::uint64_t bin_hash = 0;
  std::string content_hash;
  std::int64_t num_documents() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t num_tokens() const { return begin.back(); }
  bool operator==(const IndexTable&) const = default;
};

std::vector<std::byte> index_to_bytes(const IndexTable& table);

// kUnusable, with the reason, for bytes that are not a whole and consistent table.
Result<IndexTable> index_from_bytes(std::span<const std::byte> bytes);

}  // namespace ptrain::data
