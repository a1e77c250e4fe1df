#pragma once

#include "core/base/result.h"
#include "core/mesh/layout.h"
#include "core/model/architecture.h"

namespace ptrain::mesh {

// Whether tp, ulysses, ep and etp divide what they split. Errors (kUsage) say what does not, and
// the nearest degree that divides all.
Status check_divisible(const model::Architecture& whole, const Layout& layout);

}  // namespace ptrain::mesh
