#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"

namespace ptrain::data {

// What a plan must know of a SentencePiece model; the planner links no SentencePiece.
struct SentencePieceFacts {
  std::int64_t num_pieces = 0;  // tokens are below it
  std::int64_t eos = -1;        // the control piece that ends a document; -1: none
  bool operator==(const SentencePieceFacts&) const = default;
};

// A model larger than this is none: those in use have less than 10 MB.
inline constexpr std::size_t kMostSentencePieceBytes = std::size_t{1} << 28;

// From the bytes of a .model (a protocol buffer of sentencepiece_model.proto). kUnusable, with the
// reason, for bytes that are none.
Result<SentencePieceFacts> sentencepiece_facts(std::span<const std::byte> bytes);

}  // namespace ptrain::data
