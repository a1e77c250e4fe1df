#pragma once

#include "engine/layers/axis_share.h"

namespace ptrain::layers {

// The ranks of the tensor axis share a batch. Of the residual stream each holds the rows of its own
// tokens; what its columns of a matrix read or give has the rows of all.
class TensorShare : public AxisShare {
 public:
  explicit TensorShare(const model::Architecture& architecture)
      : AxisShare(architecture.tensor, ExchangeAxis::kTensor) {}
};

}  // namespace ptrain::layers
