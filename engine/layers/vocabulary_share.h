#pragma once

#include "engine/layers/axis_share.h"

namespace ptrain::layers {

// The ranks that share the embedding's or the head's matrix. Where it is spread over the pipeline
// those of one stage hold the stream: the others give their part of what an embedding looks up, or
// get the rows that a head reads and give their part of their gradient.
class VocabularyShare : public AxisShare {
 public:
  explicit VocabularyShare(const model::VocabularyPlace& place)
      : AxisShare({place.size, place.rank},
                  place.is_spread() ? ExchangeAxis::kVocabulary : ExchangeAxis::kTensor,
                  {place.first_holder, place.num_holders}) {}
};

}  // namespace ptrain::layers
