#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/index.h"

namespace ptrain::data {

// An index of documents given as they are.
class MemoryIndex final : public Index {
 public:
  using Documents = std::vector<std::vector<std::uint16_t>>;
  using Silent = std::vector<std::vector<TokenRange>>;  // of each document
  explicit MemoryIndex(Documents documents, Silent silent = {})
      : documents_(std::move(documents)), silent_(std::move(silent)) {}
  std::int64_t num_documents() const override { return std::ssize(documents_); }
  Tokens document(std::int64_t index) const override {
    return Tokens(std::span<const std::uint16_t>(documents_.at(static_cast<std::size_t>(index))));
  }
  std::vector<TokenRange> silent(std::int64_t index) const override {
    const auto i = static_cast<std::size_t>(index);
    return i < silent_.size() ? silent_[i] : std::vector<TokenRange>{};
  }
  std::uint32_t vocabulary() const override { return kBytePad + 1; }
  std::vector<std::int64_t> sources() const override { return sources_; }
  // The first document of each source; the last is the number of documents.
  void set_sources(std::vector<std::int64_t> sources) { sources_ = std::move(sources); }
  std::uint32_t pad() const override { return kBytePad; }
  const std::string& content_hash() const override { return hash_; }

 private:
  Documents documents_;
  Silent silent_;
  std::vector<std::int64_t> sources_{0, std::ssize(documents_)};
  std::string hash_ = "memory";
};

inline std::shared_ptr<const Index> memory_index(MemoryIndex::Documents documents,
                                                 MemoryIndex::Silent silent = {}) {
  return std::make_shared<MemoryIndex>(std::move(documents), std::move(silent));
}

}  // namespace ptrain::data
