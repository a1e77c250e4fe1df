#pragma once

#include "engine/train/trainer.h"

namespace ptrain::train {

// The first step of the plan's only shape, from the start: leaves what every segment made, as
// sketches, in the run directory's parity/, to be compared with those of another layout. Collective
// over the world.
Outcome record_parity(const TrainInput& input);

}  // namespace ptrain::train
