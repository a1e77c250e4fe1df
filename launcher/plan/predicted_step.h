#pragma once

#include "core/program/action.h"
#include "core/run/plan.h"
#include "launcher/plan/plan.h"
#include "launcher/plan/simulate.h"

namespace ptrain::plan {

// A step of rank 0 on the clock of the simulator.
struct PredictedStep {
  program::Program program;
  RankTimeline timeline;  // of its actions, by id
};

// The step that one shape's chosen layout is predicted to do: for a run that has its plan already.
Result<PredictedStep> predicted_step(const PlanInput& input, const run::ShapePlan& shape);

}  // namespace ptrain::plan
