#pragma once

#include "core/model/architecture.h"

namespace ptrain::model {

// The architecture of a complete config and its family's decoder, or of the sizes that one rank
// sees of it (mesh/part.h).
Architecture build_architecture(recipe::Model config, Decoder decoder, DType compute_dtype);

}  // namespace ptrain::model
