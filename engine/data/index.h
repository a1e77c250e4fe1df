#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/data/index_format.h"
#include "core/packing/window.h"
#include "core/recipe/recipe.h"
#include "engine/data/tokens.h"

namespace ptrain::data {

// A tokenised text: documents of tokens. Read-only, mapped into memory.
class Index {
 public:
  virtual ~Index() = default;
  virtual std::int64_t num_documents() const = 0;
  virtual Tokens document(std::int64_t index) const = 0;
  // Its tokens that are never targets, counted from its first; ascending.
  virtual std::vector<TokenRange> silent(std::int64_t index) const = 0;
  virtual std::uint32_t vocabulary() const = 0;  // every token is below it
  virtual std::uint32_t pad() const = 0;         // fills rows
  // The first document of each entry of data.train, and the end of the last.
  virtual std::vector<std::int64_t> sources() const = 0;
  virtual const std::string& content_hash() const = 0;  // of sources and tokenizer
  // Lets go of memory that documents were read through; they can be read again.
  virtual void release_pages() const {}
};

// Targets of a range that are learned from: all but those that are silent.
std::int64_t count_targets(const Index& index, const packing::Range& range);

// Byte tokenizer: 0-255, EOS 256, PAD 257; vocabulary padded to a multiple of 64 (320).
inline constexpr std::int32_t kByteEos = 256;
inline constexpr std::int32_t kBytePad = 257;

struct IndexFiles {
  std::string train;       // path without .idx/.bin
  std::string validation;  // empty: the recipe asks for none
  std::string train_hash;
  std::string validation_hash;
  std::int64_t train_documents = 0, validation_documents = 0;
  std::int64_t train_tokens = 0, validation_tokens = 0;
  std::int64_t skipped_files = 0;  // matched by a pattern, but empty or not a regular file
  bool sources_changed = false;    // since the index was built; only from reopen_index
};

// Builds what is missing in the cache and says where it lies. Several processes may call at once:
// one builds, the others wait. folder: what relative paths start from. The split into train and
// validation depends on the documents' bytes alone: not on names, order or seed. A second call
// trusts path, size and modification time (ns) of each file, and reads none of them. EngineError:
// kUsage for what the recipe cannot ask for; kUnusable where no file matches, a file cannot be
// read, or nothing is left after empty files; kEnvironment where the cache cannot be written.
IndexFiles prepare_index(const recipe::Data& data, const std::string& folder);

// The index that a checkpoint names by its hashes (validation_hash may be empty). Sources that have
// changed since are reported, not read; an index that is gone is built again. EngineError
// (kUnusable) when the sources no longer give the same hashes.
IndexFiles reopen_index(const recipe::Data& data, const std::string& folder,
                        const std::string& train_hash, const std::string& validation_hash);

// Opens PATH.idx and PATH.bin. EngineError (kUnusable) where they are damaged or do not belong
// together.
std::shared_ptr<const Index> open_index(const std::string& path);

// How many of these documents rows of `sequence` tokens must cut.
std::int64_t count_cut(const Index& index, const std::vector<std::int64_t>& documents,
                       std::int64_t sequence);

}  // namespace ptrain::data
