#pragma once

#include <string>

#include "core/run/plan.h"
#include "core/run/request.h"
#include "engine/comm/communicator.h"
#include "engine/control/control_client.h"

namespace ptrain::train {

struct TrainInput {
  const run::Request& request;
  const run::Plan& plan;
  comm::Communicator& world;
  control::ControlClient& control;
};

// How a rank's training ended; the same on every rank.
struct Outcome {
  ExitCode code = ExitCode::kDone;
  std::string message;
  std::string next_shape;  // with kDone: what the next attempt runs; empty: the run is finished
};

// Trains the shape that the newest good checkpoint (or the start) is in, to the shape's end or to a
// stop request. Collective over the world. EngineError when it cannot go on.
Outcome train(const TrainInput& input);

}  // namespace ptrain::train
