#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/data/index_format.h"
#include "engine/data/file.h"

namespace ptrain::data {

// Writes an index: the tokens of its documents, and a table that comes last, since without it there
// is no index.
class TokenWriter {
 public:
  TokenWriter(const std::string& path, std::uint32_t token_bytes);
  void begin_source();  // that its next documents belong to another source
  void tokens(std::span<const std::uint32_t> tokens);
  void silent(const std::vector<TokenRange>& ranges);  // of the document that began last
  void end_document();                                 // without tokens: there is none
  void publish(const std::string& content_hash, std::uint32_t vocabulary, std::uint32_t pad);
  std::uint32_t largest() const { return largest_; }

 private:
  template <class Stored>
  void write_as(std::span<const std::uint32_t> tokens);

  std::string path_;
  NewFile file_;
  IndexTable table_;
  Hasher64 hasher_;
  std::int64_t num_tokens_ = 0;
  std::uint32_t largest_ = 0;
};

}  // namespace ptrain::data
