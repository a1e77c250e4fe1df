#pragma once

#include "engine/kernels/cross_entropy.h"
#include "engine/layers/layer.h"
#include "engine/layers/vocabulary_part.h"

namespace ptrain::layers {

// The loss of logits, of which each rank that shares the head has those of its part of the
// vocabulary. The ranks combine three numbers a row, within the call.
class VocabularyLoss {
 public:
  VocabularyLoss(const model::Architecture& architecture, const model::ParameterSpec& matrix);

  const VocabularyPart& part() const { return part_; }
  // Adds the loss of tokens [begin, begin + rows of logits); the sums of the first rank that has
  // the stream alone count.
  // logits: as kernels::cross_entropy leaves them.
  void add(const Context& context, std::int64_t begin, const Tensor& logits, kernels::LogitsUse use,
           LossSums& sums) const;
  // Of logits [n, whole vocabulary], the columns of the other ranks.
  void gather(const Context& context, const Tensor& logits) const;

 private:
  double over_parts(const Context& context, std::span<const std::int32_t> targets,
                    const Tensor& logits, kernels::LogitsUse use) const;

  model::VocabularyPlace place_;
  VocabularyPart part_;
};

}  // namespace ptrain::layers
