#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/recipe/recipe.h"

namespace ptrain::data {

// A tokenised text: documents of int32 tokens, each ending in EOS. Read-only, mapped into memory.
class Index {
 public:
  virtual ~Index() = default;
  virtual std::int64_t num_documents() const = 0;
  virtual std::span<const std::uint16_t> document(std::int64_t index) const = 0;
  virtual const std::string& content_hash() const = 0;  // of sources and tokenizer
};

// Byte tokenizer: 0-255, EOS 256, PAD 257; vocabulary padded to a multiple of 64 (320).
inline constexpr std::int32_t kByteEos = 256;
inline constexpr std::int32_t kBytePad = 257;

struct IndexFiles {
  std::string train;  // path without .idx/.bin
  std::string validation;
  std::string train_hash;
  std::string validation_hash;
  std::int64_t train_documents = 0, validation_documents = 0, train_tokens = 0,
               validation_tokens = 0;
};

// Builds what is missing in the cache (one process; others wait) and says where it lies.
// folder: what relative paths start from. EngineError (kUnusable): no file matches, a file cannot
// be read, or nothing is left after empty files; each with the path and what to do.
IndexFiles prepare_index(const recipe::Data& data, const std::string& folder, std::uint64_t seed);

// Opens PATH.idx and PATH.bin. EngineError (kUnusable) where they are damaged or do not belong
// together.
std::shared_ptr<const Index> open_index(const std::string& path);

}  // namespace ptrain::data
