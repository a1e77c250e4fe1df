#pragma once

#include "engine/layers/axis_share.h"

namespace ptrain::layers {

// The ranks that share the head's matrix. Where the head is spread over the pipeline those of the
// last stage hold the stream, and the others get its rows and give their part of its gradient.
class HeadShare : public AxisShare {
 public:
  explicit HeadShare(const model::Architecture& architecture)
      : AxisShare({architecture.head.size, architecture.head.rank},
                  architecture.head.is_spread() ? ExchangeAxis::kHead : ExchangeAxis::kTensor,
                  {architecture.head.first_holder, architecture.head.num_holders}) {}
};

}  // namespace ptrain::layers
