#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/architecture.h"
#include "engine/base/tensor.h"

namespace ptrain::layers {

// The tokens whose rows of a table this rank has: all, or those from `first` on. Rows behind the
// end of the vocabulary, which pad the last part, stand for none.
class VocabularyPart {
 public:
  explicit VocabularyPart(const model::ParameterSpec& table);

  std::int64_t whole() const { return whole_; }
  std::int64_t first() const { return first_; }
  std::int64_t size() const { return size_; }
  // The rows of `table` that stand for tokens.
  Tensor rows(const Tensor& table) const { return table.row_range(0, size_); }
  // The rows of the table that tokens have here; kernels::kNoRow for the others, and for what is
  // below 0.
  std::vector<std::int32_t> own(std::span<const std::int32_t> tokens) const;

 private:
  std::int64_t whole_, first_, size_;
};

}  // namespace ptrain::layers
