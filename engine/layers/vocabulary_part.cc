#include "engine/layers/vocabulary_part.h"

#include <algorithm>

#include "engine/kernels/embedding.h"
#include "engine/layers/layer.h"

namespace ptrain::layers {

VocabularyPart::VocabularyPart(const model::ParameterSpec& table)
    : whole_(table.whole_shape.empty() ? table.shape.front() : table.whole_shape.front()),
      first_(table.offsets.empty() ? 0 : table.offsets.front()),
      size_(std::clamp<std::int64_t>(whole_ - first_, 0, table.shape.front())) {}

std::vector<std::int32_t> VocabularyPart::own(std::span<const std::int32_t> tokens) const {
  std::vector<std::int32_t> rows;
  rows.reserve(tokens.size());
  for (const std::int32_t token : tokens) {
    const bool is_here = token >= first_ && token < first_ + size_;
    rows.push_back(is_here ? static_cast<std::int32_t>(token - first_) : kernels::kNoRow);
  }
  return rows;
}

std::int64_t vocabulary_of(const model::Architecture& architecture) {
  const std::vector<int>& last = architecture.layers.back().parameters;
  if (last.empty()) return 0;  // another rank has the head
  return VocabularyPart(architecture.parameters[static_cast<std::size_t>(last.back())]).whole();
}

}  // namespace ptrain::layers
