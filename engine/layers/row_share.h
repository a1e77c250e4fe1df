#pragma once

#include "engine/layers/axis_share.h"

namespace ptrain::layers {

// The ranks that hold tokens of the same rows: those of the context axes, and within each place of
// these the ranks of the tensor axis.
class RowShare : public AxisShare {
 public:
  explicit RowShare(const model::Architecture& architecture)
      : AxisShare(place_of(architecture), ExchangeAxis::kRows) {}

 private:
  static model::AxisPlace place_of(const model::Architecture& architecture) {
    const model::AxisPlace &tensor = architecture.tensor, &ring = architecture.ring,
                           &ulysses = architecture.ulysses;
    return {ring.size * ulysses.size * tensor.size,
            (ring.rank * ulysses.size + ulysses.rank) * tensor.size + tensor.rank};
  }
};

}  // namespace ptrain::layers
