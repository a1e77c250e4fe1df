#pragma once

#include <vector>

#include "core/model/architecture.h"

namespace ptrain::model {

// The dtype that layers multiply in. By layer, where they differ; the wide dtype is that of all.
struct ComputeDTypes {
  DType all = DType::kFloat32;
  std::vector<DType> layers = {};
  DType of(int layer) const {
    return layers.empty() ? all : layers[static_cast<std::size_t>(layer)];
  }
};

// The architecture of a complete config and its family's decoder, or of the sizes that one rank
// sees of it (mesh/part.h).
Architecture build_architecture(recipe::Model config, Decoder decoder, ComputeDTypes dtypes);

}  // namespace ptrain::model
