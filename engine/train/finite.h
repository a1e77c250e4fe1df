#pragma once

#include <string>

#include "engine/train/run_state.h"

namespace ptrain::train {

// Whether the parameters that were loaded from `source` are numbers: a NaN or infinity would spread
// through the first step, and look like a learning rate that is too high. Collective over the
// world; EngineError (kUnusable), the same on all ranks, that names the parameters.
void check_finite(const RankState& state, const std::string& source);

}  // namespace ptrain::train
