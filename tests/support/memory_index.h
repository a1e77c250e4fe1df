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
  explicit MemoryIndex(Documents documents) : documents_(std::move(documents)) {}
  std::int64_t num_documents() const override { return std::ssize(documents_); }
  std::span<const std::uint16_t> document(std::int64_t index) const override {
    return documents_.at(static_cast<std::size_t>(index));
  }
  const std::string& content_hash() const override { return hash_; }

 private:
  Documents documents_;
  std::string hash_ = "memory";
};

inline std::shared_ptr<const Index> memory_index(MemoryIndex::Documents documents) {
  return std::make_shared<MemoryIndex>(std::move(documents));
}

}  // namespace ptrain::data
